// The summary as a picture: a map of how many blocks of which size lived how long. Its columns are the size classes.
// Its rows are lifetimes, with four rows a doubling as sizes have, and one for each lifetime up to 7.

#include <algorithm>
#include <cassert>

#include "lifetimes/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"

namespace cmt::lifetimes {
namespace {

using picture::HeatMap;
using picture::Unit;

constexpr std::size_t single_rows = 8;  ///< rows of one class of lifetimes; later rows have two classes
constexpr std::size_t age_rows = single_rows + (AgeClasses::count - single_rows) / 2;

/// The first class of a row.
std::size_t first_age(std::size_t row) { return row < single_rows ? row : 2 * row - single_rows; }

/// The first and the last index in use.
struct IndexRange {
  std::size_t first = ~std::size_t{0};
  std::size_t last = 0;

  void include(std::size_t i) {
    first = std::min(first, i);
    last = std::max(last, i);
  }
  bool is_empty() const { return first > last; }
};

double edge_after(std::uint64_t high) { return static_cast<double>(high) + 1; }

std::uint64_t ended_in_row(const SizeSummary& size, std::size_t row) {
  std::uint64_t count = 0;
  for (std::size_t age = first_age(row); age < first_age(row + 1); ++age) count += size.lifetimes[age];
  return count;
}

HeatMap heat_of(const Summary& summary) {
  IndexRange sizes, rows;
  for (std::size_t size = 0; size < SizeClasses::count; ++size) {
    if (summary.sizes[size].in_use()) sizes.include(size);
    for (std::size_t row = 0; row < age_rows; ++row) {
      if (ended_in_row(summary.sizes[size], row) != 0) rows.include(row);
    }
  }
  HeatMap heat{.title = "blocks", .log = true, .marginals = true};
  if (sizes.is_empty()) return heat;
  if (rows.is_empty()) rows.include(0);
  for (std::size_t size = sizes.first; size <= sizes.last; ++size) {
    heat.x_edges.push_back(static_cast<double>(SizeClasses::low(size)));
    heat.apart.push_back(static_cast<double>(summary.sizes[size].leaked.blocks));
  }
  heat.x_edges.push_back(edge_after(SizeClasses::high(sizes.last)));
  for (std::size_t row = rows.first; row <= rows.last; ++row) {
    heat.y_edges.push_back(static_cast<double>(AgeClasses::low(first_age(row))));
    for (std::size_t size = sizes.first; size <= sizes.last; ++size) {
      heat.cells.push_back(static_cast<double>(ended_in_row(summary.sizes[size], row)));
    }
  }
  heat.y_edges.push_back(edge_after(AgeClasses::high(first_age(rows.last + 1) - 1)));
  assert(heat.cells.size() == (heat.x_edges.size() - 1) * (heat.y_edges.size() - 1));
  heat.apart_title = "alive at end";
  return heat;
}

picture::Axis age_axis(heap::Clock::Unit clock) {
  if (clock == heap::Clock::Unit::events) return {"lifetime in events", Unit::count, true};
  if (clock == heap::Clock::Unit::time) return {"lifetime", Unit::ns, true};
  return {"lifetime in bytes allocated meanwhile", Unit::bytes, true};
}

/// Returns a number of blocks as a share of all blocks that were made; "0.0 %" if there are none.
std::string percent_of_blocks(std::uint64_t part, const SizeSummary& all) {
  return output::percent_text(part, std::max<std::uint64_t>(all.allocated.blocks, 1));
}

std::string title(const Summary& summary) {
  if (summary.inputs.size() != 1) return output::with_commas(summary.inputs.size()) + " traces";
  const std::string& name = summary.inputs.front().name;
  return command::input_name(name);
}

}  // namespace

picture::Picture to_picture(const Summary& summary) {
  const SizeSummary all = summary.total();
  std::uint64_t events = 0;
  for (const Input& input : summary.inputs) events += input.events;
  picture::Picture picture;
  picture.title = title(summary);
  picture.subtitle = output::counted(events, "event") + "; " + output::counted(all.allocated.blocks, "block") +
                     ", of which " + percent_of_blocks(all.short_lived, all) + " were short-lived and " +
                     percent_of_blocks(all.leaked.blocks, all) + " alive at the end";
  picture::Panel panel{"Lifetime by size", {"bytes asked for", Unit::bytes, true}, age_axis(summary.clock)};
  panel.heat = heat_of(summary);
  picture.panels = {std::move(panel)};
  return picture;
}

}  // namespace cmt::lifetimes
