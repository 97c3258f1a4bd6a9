// The summary as a picture: the memory in use over time, and below it a map of the addresses that were live.
//
// Each bin of addresses that was ever in use is a row of the map. A long stretch of addresses without a live block is
// left out. A broken line marks the place, and the next row is labelled with its address.

#include <algorithm>

#include "analysis/places/plot_data.h"
#include "overhead/forms.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/picture/axis.h"

namespace cmt::overhead {
namespace {

using namespace analysis;
using picture::Axis;
using picture::HeatMap;
using picture::Panel;
using picture::Series;
using picture::Unit;

using ClockUnit = heap::Clock::Unit;

/// The x axis: by the clock of --clock. Without it, time if it was recorded, else events.
class TimeAxis {
 public:
  explicit TimeAxis(const Summary& summary) {
    const bool timed = !summary.curve->empty() && summary.curve->back().time_ns != unknown;
    unit_ = summary.axis.value_or(timed ? ClockUnit::time : ClockUnit::events);
  }

  Axis axis() const {
    if (unit_ == ClockUnit::events) return {"events", Unit::count};
    return unit_ == ClockUnit::time ? Axis{"time", Unit::ns} : Axis{"bytes allocated", Unit::bytes};
  }

  template <class Moment>
  double position(const Moment& moment) const {
    if (unit_ == ClockUnit::events) return static_cast<double>(moment.event);
    if (unit_ == ClockUnit::bytes) return static_cast<double>(moment.allocated_bytes);
    return moment.time_ns == unknown ? 0 : static_cast<double>(moment.time_ns);
  }

 private:
  ClockUnit unit_;
};

Panel memory_panel(const Summary& summary, const TimeAxis& axis) {
  Series live{"live bytes", {}, {}, Series::Form::band};
  Series rest{"unused on the pages that live blocks are on", {}, {}, Series::Form::band};
  Series held{"on pages without a live block, if the allocator holds them all", {}, {}, Series::Form::band};
  for (const MemoryUse& use : *summary.curve) {
    const auto bytes = static_cast<double>(use.live_bytes);
    const auto pages = static_cast<double>(use.pages) * static_cast<double>(summary.page_size);
    for (Series* series : {&live, &rest, &held}) series->x.push_back(axis.position(use));
    live.y.push_back(bytes);
    rest.y.push_back(std::max(0.0, pages - bytes));
    held.y.push_back(static_cast<double>(use.held_pages_max) * static_cast<double>(summary.page_size));
  }
  Panel panel{"Memory over time", axis.axis(), {"", Unit::bytes}};
  panel.series = {std::move(live), std::move(rest), std::move(held)};
  return panel;
}

Panel address_panel(const Summary& summary, const TimeAxis& axis) {
  const AddressMap& map = *summary.address_map;
  const picture::AddressRows rows = picture::address_rows(used_bins(map.moments), map.bin_bytes);
  HeatMap heat{.title = "bytes live", .unit = Unit::share};
  heat.y_edges = rows.edges;
  double last = 0;
  std::vector<const AddressMap::Moment*> columns;
  for (const AddressMap::Moment& moment : map.moments) {
    if (heat.x_edges.empty()) heat.x_edges.push_back(last);
    if (axis.position(moment) <= last) continue;
    heat.x_edges.push_back(last = axis.position(moment));
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
                  picture::label_text(Unit::bytes, static_cast<double>(map.bin_bytes)) + " that were ever used",
              axis.axis(), rows.axis};
  if (heat.columns() > 0) panel.heat = std::move(heat);
  return panel;
}

}  // namespace

picture::Picture to_picture(const Summary& summary) {
  const TimeAxis axis(summary);
  const MemoryUse& peak = summary.peak;
  picture::Picture picture;
  picture.title = command::input_name(summary.name);
  picture.subtitle = output::counted(summary.events, "event") + "; at the peak " + output::bytes_text(peak.live_bytes) +
                     " live in " + output::counted(peak.live_blocks, "block") + " on " +
                     output::counted(peak.pages, "page") + " of " +
                     picture::label_text(Unit::bytes, static_cast<double>(summary.page_size));
  picture.panels = {memory_panel(summary, axis), address_panel(summary, axis)};
  return picture;
}

}  // namespace cmt::overhead
