// The board as a picture. It has time against memory, and the matrix as maps: by how much each allocator is above the
// best. A page (.html) also has the memory along each trace.
#include <algorithm>
#include <cmath>

#include "cmtreplay/board/board.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

using picture::Axis;
using picture::HeatMap;
using picture::Panel;
using picture::Series;
using picture::Unit;

/// A name as short as the label of a column has to be if a map has so many columns.
std::string short_name(const std::string& name, std::size_t columns = 4) {
  constexpr std::size_t letters_max = 112;
  return output::shortened(name, std::max<std::size_t>(8, letters_max / std::max<std::size_t>(1, columns)));
}

/// Whether one allocator is so far from the others that these would look like one spot.
bool is_wide(const Panel& panel, std::vector<double> Series::*values) {
  constexpr double wide = 10;
  double most = 1;
  for (const Series& point : panel.series) {
    for (const double value : point.*values) most = std::max(most, value);
  }
  return most > wide;
}

/// Whether the reference is not one of the allocators. A picture has it nevertheless, at its ratio of 1.
bool lacks_reference(const Board& board) {
  return std::none_of(board.allocators.begin(), board.allocators.end(),
                      [&board](const BoardAllocator& allocator) { return allocator.name == board.reference; });
}

/// One point for each allocator: its geometric means.
Panel time_against(const Board& board, Ratio BoardAllocator::*memory, const std::string& what) {
  Panel panel{.title = "Time against " + what + ", geometric means: left and low is good",
              .x = {"time, " + board.reference + " = 100 %", Unit::share},
              .y = {what + ", " + board.reference + " = 100 %", Unit::share}};
  for (const BoardAllocator& allocator : board.allocators) {
    Series point{.name = short_name(allocator.name), .x = {}, .y = {}, .form = Series::Form::point};
    const Ratio &x = allocator.time, &y = allocator.*memory;
    if (x.is_known() && y.is_known()) {
      point.add(x.ratio, y.ratio);
      point.within.push_back({x.low, x.high, y.low, y.high});
    }
    panel.series.push_back(std::move(point));
  }
  if (lacks_reference(board))
    panel.series.push_back({short_name(board.reference), {1}, {1}, Series::Form::point, {{1, 1, 1, 1}}});
  panel.x.log = is_wide(panel, &Series::x);
  panel.y.log = is_wide(panel, &Series::y);
  return panel;
}

/// A map of how far each cell is above the least of its trace. The least has the lightest colour, and a cell that is
/// not known has none.
Panel beyond_best(const Board& board, Ratio BoardCell::*figure, const std::string& title) {
  constexpr double least_drawn = 1e-4;
  const bool adds_reference = lacks_reference(board);
  const std::size_t rows = board.traces.size(), own = board.allocators.size();
  const std::size_t columns = own + (adds_reference ? 1 : 0);
  Panel panel{
      .title = title, .x = {"allocator"}, .y = {""}, .heat = HeatMap{.title = "above the best", .unit = Unit::share}};
  HeatMap& heat = *panel.heat;
  heat.numbers = true;
  for (std::size_t i = 0; i <= columns; ++i) heat.x_edges.push_back(static_cast<double>(i));
  for (std::size_t i = 0; i <= rows; ++i) heat.y_edges.push_back(static_cast<double>(i));
  for (std::size_t column = 0; column < columns; ++column) {
    const std::string& name = column < own ? board.allocators[column].name : board.reference;
    heat.column_names.push_back(short_name(name, columns));
    panel.x.ticks.push_back({static_cast<double>(column) + 0.5, heat.column_names.back()});
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t row = rows - 1 - i;  // the first trace at the top
    heat.row_names.push_back(short_name(board.traces[row].name));
    heat.row_details.push_back(row);
    panel.y.ticks.push_back({static_cast<double>(i) + 0.5, heat.row_names.back()});
    std::vector<double> ratios;
    for (std::size_t column = 0; column < own; ++column) ratios.push_back((board.at(row, column).*figure).ratio);
    const auto is_known = [](double ratio) { return !std::isnan(ratio); };
    if (adds_reference) ratios.push_back(std::any_of(ratios.begin(), ratios.end(), is_known) ? 1 : Ratio::none);
    double least = INFINITY;
    for (const double ratio : ratios) least = is_known(ratio) ? std::min(least, ratio) : least;
    for (const double ratio : ratios)
      heat.cells.push_back(is_known(ratio) ? std::max(ratio / least - 1, least_drawn) : 0);
  }
  return panel;
}

/// Resident memory of each allocator, and live bytes, along one trace.
Panel memory_along(const Board& board, std::size_t row) {
  Panel panel{.title = board.traces[row].name + ": memory along the trace",
              .x = {"events", Unit::count},
              .y = {"bytes", Unit::bytes}};
  const CellSeries* live = nullptr;
  for (std::size_t column = 0; column < board.allocators.size(); ++column) {
    Series series{.name = short_name(board.allocators[column].name), .x = {}, .y = {}};
    const BoardCell& cell = board.at(row, column);
    if (cell.is_measured()) {
      const CellSeries& seen = board.cells[cell.index].series;
      const std::size_t count = std::min(seen.event.size(), seen.resident_bytes.size());
      for (std::size_t i = 0; i < count; ++i) series.add(seen.event[i], seen.resident_bytes[i]);
      if (count != 0) live = &seen;
    }
    panel.series.push_back(std::move(series));
  }
  Series all{.name = "live", .x = {}, .y = {}};
  for (std::size_t i = 0; live && i < std::min(live->event.size(), live->live_bytes.size()); ++i)
    all.add(live->event[i], live->live_bytes[i]);
  panel.series.push_back(std::move(all));
  return panel;
}

std::string machines_text(const Board& board) {
  std::string text;
  for (const BoardNode& node : board.nodes) {
    const std::string cpu = node.machine.cpu.value_or("an unknown processor");
    if (text.find(cpu) == text.npos) text += (text.empty() ? " on " : ", ") + cpu;
  }
  return text;
}

}  // namespace

picture::Picture board_picture(const Board& board, bool tables) {
  picture::Picture picture;
  picture.title =
      output::counted(board.allocators.size(), "allocator") + " on " + output::counted(board.traces.size(), "trace");
  std::uint64_t events = 0;
  for (const CellTrace& trace : board.traces) events += trace.events;
  picture.subtitle = output::counted(events, "event") + "; measured" + machines_text(board) + "; ratios to " +
                     board.reference + (board.measured() == 0 ? "" : "; " + intervals_text(board));
  picture.panels = {time_against(board, &BoardAllocator::peak, "peak memory"),
                    time_against(board, &BoardAllocator::mean, "mean memory"),
                    beyond_best(board, &BoardCell::time, "Time of each trace above the fastest allocator's"),
                    beyond_best(board, &BoardCell::peak, "Peak memory of each trace above the least")};
  for (std::size_t row = 0; row < board.traces.size(); ++row) picture.details.push_back(memory_along(board, row));
  if (tables) picture.tables = board_tables(board);
  picture.table = board_notes(board);
  return picture;
}

}  // namespace cmt::replay
