// Draws working sets: their size over time, the touched pages or mappings, and the reuse distances.
#include "cmtwatch/report/wss_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "toolkit/output/numbers.h"
#include "toolkit/picture/axis.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using picture::Axis;
using picture::HeatMap;
using picture::Panel;
using picture::Series;
using picture::Unit;

constexpr std::size_t rows_max = 512;
constexpr std::size_t mappings_max = 40;

Axis time_axis() { return {.title = "time", .unit = Unit::ns}; }

Panel over_time(const std::vector<WorkingSet>& sets) {
  Panel panel = bytes_over_time("memory touched in each interval", "");
  Series resident{"resident", {}, {}, Series::Form::step}, touched{"working set", {}, {}, Series::Form::step};
  const auto add = [&](std::int64_t time_ns, const WorkingSet& set) {
    resident.add(time_ns, set.touched.resident_bytes());
    touched.add(time_ns, set.touched.touched_bytes());
  };
  for (const WorkingSet& set : sets) add(set.begin_ns, set);
  if (!sets.empty()) add(sets.back().end_ns, sets.back());
  panel.series = {std::move(resident), std::move(touched)};
  return panel;
}

/// A column for each interval. The time between two, in which pages were read, belongs to the one before.
std::vector<double> time_edges(const std::vector<WorkingSet>& sets) {
  std::vector<double> edges;
  for (const WorkingSet& set : sets) edges.push_back(static_cast<double>(set.begin_ns));
  if (!sets.empty()) edges.push_back(static_cast<double>(sets.back().end_ns));
  return edges;
}

/// Calls `visit(bin, pages)` for the parts of runs that lie in each bin of pages.
template <class Visit>
void for_each_bin(const std::vector<PageRun>& runs, std::uint64_t bin_pages, Visit visit) {
  for (const PageRun& run : runs) {
    for (std::uint64_t page = run.first; page < run.first + run.count;) {
      const std::uint64_t end = std::min(run.first + run.count, (page / bin_pages + 1) * bin_pages);
      visit(page / bin_pages, end - page);
      page = end;
    }
  }
}

std::vector<std::uint64_t> used_bins(const std::vector<WorkingSet>& sets, std::uint64_t bin_pages) {
  std::vector<std::uint64_t> bins;
  for (const WorkingSet& set : sets) {
    for_each_bin(set.touched.pages, bin_pages, [&](std::uint64_t bin, std::uint64_t) { bins.push_back(bin); });
    std::sort(bins.begin(), bins.end());
    bins.erase(std::unique(bins.begin(), bins.end()), bins.end());
  }
  return bins;
}

Panel pages_over_time(const std::vector<WorkingSet>& sets) {
  std::uint64_t bin_pages = 1;
  std::vector<std::uint64_t> bins = used_bins(sets, bin_pages);
  while (bins.size() > rows_max) bins = used_bins(sets, bin_pages *= 2);
  const picture::AddressRows rows = picture::address_rows(std::move(bins), bin_pages * process::page_bytes());
  HeatMap heat{.title = "pages touched", .unit = Unit::share, .x_edges = time_edges(sets), .y_edges = rows.edges};
  heat.cells.resize(heat.columns() * heat.rows());
  for (std::size_t column = 0; column < sets.size(); ++column) {
    for_each_bin(sets[column].touched.pages, bin_pages, [&](std::uint64_t bin, std::uint64_t pages) {
      heat.cells[rows.row_of(bin) * heat.columns() + column] +=
          static_cast<double>(pages) / static_cast<double>(bin_pages);
    });
  }
  Panel panel{.title = "which pages, a row for every " +
                       picture::label_text(Unit::bytes, static_cast<double>(bin_pages * process::page_bytes())) +
                       " that were ever touched",
              .x = time_axis(),
              .y = rows.axis};
  if (heat.rows() != 0) panel.heat = std::move(heat);
  return panel;
}

std::string name_of(const process::Mapping& mapping) {
  if (mapping.name.empty()) return "anonymous";
  return mapping.name.substr(mapping.name.rfind('/') + 1);
}

/// The first addresses of the mappings of which most was touched at any time, in the order of addresses, with names.
std::map<std::uint64_t, std::string> most_touched(const std::vector<WorkingSet>& sets) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> most;
  for (const WorkingSet& set : sets) {
    for (const TouchedMapping& of : set.touched.mappings) {
      if (of.touched_bytes == 0) continue;
      auto& [bytes, name] = most[of.mapping.begin];
      bytes = std::max(bytes, of.touched_bytes);
      name = name_of(of.mapping);
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_size;  // bytes, address
  for (const auto& [begin, entry] : most) by_size.emplace_back(entry.first, begin);
  std::sort(by_size.rbegin(), by_size.rend());
  if (by_size.size() > mappings_max) by_size.resize(mappings_max);
  std::map<std::uint64_t, std::string> result;
  for (const auto& [bytes, begin] : by_size) result[begin] = most.at(begin).second;
  return result;
}

Panel mappings_over_time(const std::vector<WorkingSet>& sets) {
  const std::map<std::uint64_t, std::string> mappings = most_touched(sets);
  HeatMap heat{.title = "pages touched", .unit = Unit::count, .log = true, .x_edges = time_edges(sets)};
  Axis axis{.title = "mapping"};
  std::map<std::uint64_t, std::size_t> row_of;
  for (const auto& [begin, name] : mappings) {
    const std::size_t row = row_of.size();
    row_of[begin] = row;
    heat.y_edges.push_back(static_cast<double>(row));
    axis.ticks.push_back({static_cast<double>(row) + 0.5, name});
  }
  heat.y_edges.push_back(static_cast<double>(mappings.size()));
  heat.cells.resize(heat.columns() * heat.rows());
  for (std::size_t column = 0; column < sets.size(); ++column) {
    for (const TouchedMapping& of : sets[column].touched.mappings) {
      const auto row = row_of.find(of.mapping.begin);
      if (row == row_of.end()) continue;
      heat.cells[row->second * heat.columns() + column] = static_cast<double>(of.touched_bytes / process::page_bytes());
    }
  }
  Panel panel{.title = "which mappings", .x = time_axis(), .y = std::move(axis)};
  if (!mappings.empty()) panel.heat = std::move(heat);
  return panel;
}

/// From one page to `longest`, with a step at each distance.
Series cumulative(const char* name, const ReuseDistance::Histogram& histogram, std::uint64_t uses,
                  std::uint64_t longest) {
  Series series{name, {}, {}, Series::Form::step};
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t pages) {
    series.add(pages * process::page_bytes(), static_cast<double>(sum) / static_cast<double>(uses));
  };
  add(1);
  for (const auto& [pages, count] : histogram) {
    sum += count;
    add(pages);
  }
  add(longest);
  return series;
}

Panel reuse_panel(const ReuseDistance& reuse) {
  Panel panel{.title = "share of the uses of pages that come back within so much memory",
              .x = {.title = "reuse distance", .unit = Unit::bytes, .log = true},
              .y = {.title = "", .unit = Unit::share}};
  if (reuse.upper().empty()) return panel;
  const std::uint64_t longest = reuse.upper().rbegin()->first;
  panel.series.push_back(cumulative("at most", reuse.lower(), reuse.uses(), longest));
  panel.series.push_back(cumulative("at least", reuse.upper(), reuse.uses(), longest));
  return panel;
}

}  // namespace

picture::Picture wss_picture(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                             const ReuseDistance& reuse) {
  const bool by_page = method.method == TouchMethod::idle;
  picture::Picture picture{
      .title = "working set of process " + std::to_string(options.target.pid),
      .subtitle = output::counted(sets.size(), "interval") + ", " + (by_page ? "page by page" : "mapping by mapping"),
      .panels = {over_time(sets), by_page ? pages_over_time(sets) : mappings_over_time(sets)}};
  if (by_page) picture.panels.push_back(reuse_panel(reuse));
  return picture;
}

}  // namespace cmt::watch
