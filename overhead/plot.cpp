// The summary as a picture: how much memory there was over time, and which.
//
// In the map every bin of addresses that was ever in use is a row. Between rows that are far from each other nothing
// was ever live; such a stretch is left out, a broken line stands for it, and the address behind it is told.

#include <algorithm>
#include <charconv>

#include "output/numbers.h"
#include "output/ticks.h"
#include "overhead/report.h"

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

std::string hex(std::uint64_t address) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
}

/// The rows of the map: which bins they are, and where something is left out.
struct Rows {
  std::vector<std::uint64_t> bins;  ///< by rising address
  std::vector<double> places;       ///< of their lower edges
  Axis axis{"address", Unit::count};
};

std::vector<std::uint64_t> used_bins(const AddressMap& map) {
  std::vector<std::uint64_t> used;
  for (const AddressMap::Moment& moment : map.moments) {
    for (const AddressMap::Bin& bin : moment.bins) used.push_back(bin.bin);
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

Rows rows_of(const AddressMap& map) {
  Rows rows;
  rows.bins = used_bins(map);
  const std::uint64_t kept_gap = rows.bins.size() / 16 + 1;
  const auto break_room = static_cast<double>(rows.bins.size() / 40 + 1);
  double place = 0;
  std::vector<output::Tick> between;
  for (std::size_t i = 0; i < rows.bins.size(); ++i) {
    const std::uint64_t gap = i == 0 ? 0 : rows.bins[i] - rows.bins[i - 1] - 1;
    if (gap > kept_gap) rows.axis.breaks.push_back(place + break_room / 2);
    place += gap > kept_gap ? break_room : static_cast<double>(gap);
    const output::Tick tick{place, hex(rows.bins[i] * map.bin_bytes)};
    if (i == 0 || gap > kept_gap)
      rows.axis.ticks.push_back(tick);
    else if (i % (rows.bins.size() / 8 + 1) == 0)
      between.push_back(tick);
    rows.places.push_back(place);
    place += 1;
  }
  rows.axis.ticks.insert(rows.axis.ticks.end(), between.begin(), between.end());
  return rows;
}

/// The edges of all rows and of what lies between them.
std::vector<double> edges_of(const Rows& rows) {
  std::vector<double> edges;
  for (const double place : rows.places) {
    if (edges.empty() || edges.back() < place) edges.push_back(place);
    edges.push_back(place + 1);
  }
  return edges;
}

Panel addresses(const Summary& summary, const Course& course) {
  const AddressMap& map = summary.plot->map;
  const Rows rows = rows_of(map);
  HeatMap heat{.title = "bytes live", .unit = Unit::share};
  heat.y_edges = edges_of(rows);
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
      const auto row = std::lower_bound(rows.bins.begin(), rows.bins.end(), bin.bin) - rows.bins.begin();
      const double place = rows.places[static_cast<std::size_t>(row)];
      const auto y = std::lower_bound(heat.y_edges.begin(), heat.y_edges.end(), place) - heat.y_edges.begin();
      const double share = static_cast<double>(bin.live_bytes) / static_cast<double>(map.bin_bytes);
      heat.cells[static_cast<std::size_t>(y) * heat.columns() + x] = std::clamp(share, 1e-6, 1.0);
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
