// The summary as a picture: how much memory there was over time, and which.
//
// In the map every bin of addresses that was ever in use is a row. Between rows that are far from each other nothing
// was ever live; such a stretch is left out, a broken line stands for it, and the address behind it is told.

#include <algorithm>

#include "overhead/report.h"
#include "toolkit/output/numbers.h"
#include "toolkit/picture/address_rows.h"
#include "toolkit/picture/axis.h"

namespace cmt::overhead {
namespace {

using output::Axis;
using output::HeatMap;
using output::Panel;
using output::Series;
using output::Unit;

/// What the moments of a trace are placed by: time where it was recorded, else events.
class Course {
 public:
  explicit Course(const Summary& summary)
      : timed_(!summary.plot->curve.empty() && summary.plot->curve.back().time_ns != unknown) {}

  Axis axis() const { return timed_ ? Axis{"time", Unit::ns} : Axis{"events", Unit::count}; }

  template <class Moment>
  double place(const Moment& moment) const {
    if (!timed_) return static_cast<double>(moment.event);
    return moment.time_ns == unknown ? 0 : static_cast<double>(moment.time_ns);
  }

 private:
  bool timed_;
};

Panel memory(const Summary& summary, const Course& course) {
  Series live{"live bytes", {}, {}, Series::Form::band};
  Series rest{"unused on the pages that live blocks are on", {}, {}, Series::Form::band};
  Series free{"on wholly free pages between them", {}, {}, Series::Form::band};
  for (const Sample& sample : summary.plot->curve) {
    const auto bytes = static_cast<double>(sample.live_bytes);
    const auto pages = static_cast<double>(sample.pages) * static_cast<double>(summary.page_size);
    for (Series* series : {&live, &rest, &free}) series->x.push_back(course.place(sample));
    live.y.push_back(bytes);
    rest.y.push_back(std::max(0.0, pages - bytes));
    free.y.push_back(static_cast<double>(sample.free_pages) * static_cast<double>(summary.page_size));
  }
  Panel panel{"Memory over time", course.axis(), {"", Unit::bytes}};
  panel.series = {std::move(live), std::move(rest), std::move(free)};
  return panel;
}

std::vector<std::uint64_t> used_bins(const AddressMap& map) {
  std::vector<std::uint64_t> used;
  for (const AddressMap::Moment& moment : map.moments) {
    for (const AddressMap::Bin& bin : moment.bins) used.push_back(bin.bin);
  }
  return used;
}

Panel addresses(const Summary& summary, const Course& course) {
  const AddressMap& map = summary.plot->map;
  const output::AddressRows rows = output::address_rows(used_bins(map), map.bin_bytes);
  HeatMap heat{.title = "bytes live", .unit = Unit::share};
  heat.y_edges = rows.edges;
  double last = 0;
  std::vector<const AddressMap::Moment*> columns;
  for (const AddressMap::Moment& moment : map.moments) {
    if (heat.x_edges.empty()) heat.x_edges.push_back(last);
    if (course.place(moment) <= last) continue;
    heat.x_edges.push_back(last = course.place(moment));
    columns.push_back(&moment);
  }
  heat.cells.resize(heat.columns() * heat.rows());
  for (std::size_t x = 0; x < columns.size(); ++x) {
    for (const AddressMap::Bin& bin : columns[x]->bins) {
      const double share = static_cast<double>(bin.live_bytes) / static_cast<double>(map.bin_bytes);
      heat.cells[rows.row_of(bin.bin) * heat.columns() + x] = std::clamp(share, 1e-6, 1.0);
    }
  }
  Panel panel{"Address space over time, a row for every " +
                  output::label_text(Unit::bytes, static_cast<double>(map.bin_bytes)) + " that were ever used",
              course.axis(), rows.axis};
  if (heat.columns() > 0) panel.heat = std::move(heat);
  return panel;
}

}  // namespace

output::Picture to_picture(const Summary& summary) {
  const Course course(summary);
  const Sample& peak = summary.peak;
  output::Picture picture;
  picture.title = summary.name == "-" ? "standard input" : summary.name;
  picture.subtitle = output::with_commas(summary.events) + " events; at the peak " +
                     output::bytes_text(peak.live_bytes) + " live in " + output::with_commas(peak.live_blocks) +
                     " blocks on " + output::with_commas(peak.pages) + " pages of " +
                     output::label_text(Unit::bytes, static_cast<double>(summary.page_size));
  picture.panels = {memory(summary, course), addresses(summary, course)};
  return picture;
}

}  // namespace cmt::overhead
