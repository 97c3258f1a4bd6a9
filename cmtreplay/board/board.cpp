// Puts cells into the board's places, ranks the allocators, and compares the machines that cells come from.
#include "cmtreplay/board/board.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cmtreplay/matrix/cell_options.h"

namespace cmt::replay {
namespace {

/// The index of a key in a list of keys. A new key is added to the list.
std::size_t index_in(std::vector<std::string>& keys, const std::string& key) {
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found != keys.end()) return static_cast<std::size_t>(found - keys.begin());
  keys.push_back(key);
  return keys.size() - 1;
}

void check_comparable(const std::vector<Cell>& cells) {
  if (option_sets(cells).size() > 1)
    throw std::runtime_error("cells were replayed with different options, and cannot be compared: " +
                             option_sets_text(cells) + "; give the options of one of them");
  for (const Cell& cell : cells) {
    const Cell& first = cells.front();
    const std::string where = " (" + first.trace.name + " on " + first.allocator.name + ", " + cell.trace.name +
                              " on " + cell.allocator.name + ")";
    if (!cell.has_same_reference(first))
      throw std::runtime_error("cells have different references, and cannot be compared" + where);
  }
}

template <class Number>
double median(const std::vector<Number>& numbers) {
  std::vector<double> copies(numbers.begin(), numbers.end());
  return copies.empty() ? Ratio::none : median_of(copies);
}

std::optional<std::uint64_t> median_of_runs(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return static_cast<std::uint64_t>(median_of(values));
}

std::optional<std::uint64_t> median_of_memory(const Cell& cell, std::uint64_t MemoryFigures::*figure) {
  if (cell.runs.memory.empty()) return std::nullopt;
  return static_cast<std::uint64_t>(median_memory(cell.runs.memory, figure));
}

void summarise(BoardCell& summary, const Cell& cell) {
  if (!cell.is_measured()) {
    summary.state = cell.outcome + (cell.reason ? ": " + *cell.reason : "");
    return;
  }
  summary.state.clear();
  summary.time = ratio_of(time_samples(cell));
  summary.peak = ratio_of(memory_samples(cell, &MemoryFigures::peak));
  summary.mean = ratio_of(memory_samples(cell, &MemoryFigures::mean));
  const RatioSamples before_teardown = before_teardown_samples(cell);
  summary.before_teardown = ratio_of(before_teardown);
  summary.before_teardown_bytes = median_of_runs(before_teardown.runs);
  summary.ns_per_call = median(cell.runs.wall_ns) / static_cast<double>(cell.trace.calls);
  summary.peak_bytes = median_of_memory(cell, &MemoryFigures::peak);
  summary.mean_bytes = median_of_memory(cell, &MemoryFigures::mean);
  const RatioSamples fragmentation = fragmentation_samples(cell);
  summary.fragmentation = median(fragmentation.runs);
  summary.p999_ns = cell.latency.p999;
  if (!cell.runs.minor_faults.empty())
    summary.minor_faults = static_cast<std::uint64_t>(median(cell.runs.minor_faults));
}

/// Finds the places of a board, and fills them with cells.
class BoardBuilder {
 public:
  BoardBuilder(Board& board, const std::vector<Cell>& expected) : board_(board) {
    for (const Cell& cell : expected.empty() ? in_order(board.cells) : expected) add_place(cell);
  }

  void fill() {
    name_columns();
    const std::size_t columns = board_.allocators.size();
    for (const CellTrace& trace : board_.traces) {
      for (const BoardAllocator& allocator : board_.allocators)
        board_.summaries.push_back({.trace = trace.name, .allocator = allocator.name, .state = "missing"});
    }
    for (std::size_t i = 0; i < board_.cells.size(); ++i) {
      const Cell& cell = board_.cells[i];
      const auto row = std::find(rows_.begin(), rows_.end(), cell.row_key());
      const auto column = std::find(columns_.begin(), columns_.end(), cell.column_key());
      if (row == rows_.end() || column == columns_.end()) {
        board_.left_out += row != rows_.end() && has_column_named(cell.allocator.name) ? 1 : 0;
        continue;
      }
      CellTrace& trace = board_.traces[static_cast<std::size_t>(row - rows_.begin())];
      const std::string name = trace.name;  // of the expected trace: the cell may be of a copy of it
      trace = cell.trace;
      trace.name = name;
      fill_place(board_.summaries[static_cast<std::size_t>(row - rows_.begin()) * columns +
                                  static_cast<std::size_t>(column - columns_.begin())],
                 cell, i);
    }
    for (const BoardCell& summary : board_.summaries) board_.missing += summary.state == "missing" ? 1 : 0;
  }

 private:
  /// Sorts cells by trace, with the reference before the other allocators, which are sorted by name.
  static std::vector<Cell> in_order(std::vector<Cell> cells) {
    const auto order = [](const Cell& cell) {
      return std::tuple(cell.allocator.name != cell.reference.name, cell.allocator.name);
    };
    std::stable_sort(cells.begin(), cells.end(), [&](const Cell& a, const Cell& b) { return order(a) < order(b); });
    std::stable_sort(cells.begin(), cells.end(),
                     [](const Cell& a, const Cell& b) { return a.trace.name < b.trace.name; });
    return cells;
  }

  void add_place(const Cell& cell) {
    if (index_in(rows_, cell.row_key()) == board_.traces.size()) board_.traces.push_back(cell.trace);
    if (index_in(columns_, cell.column_key()) == board_.allocators.size())
      board_.allocators.push_back({.name = cell.allocator.name, .allocator = cell.allocator});
  }

  bool has_column_named(const std::string& name) const {
    return std::any_of(board_.allocators.begin(), board_.allocators.end(),
                       [&name](const BoardAllocator& allocator) { return allocator.allocator.name == name; });
  }

  /// If two builds have one name, gives them their paths as names, or the first digits of their hashes if the paths are
  /// equal.
  void name_columns() {
    std::map<std::string, std::vector<std::string>> paths;
    for (const BoardAllocator& allocator : board_.allocators)
      paths[allocator.name].push_back(allocator.allocator.asked.value_or(allocator.name));
    for (BoardAllocator& allocator : board_.allocators) {
      const std::vector<std::string>& all = paths[allocator.name];
      if (all.size() == 1) continue;
      const bool differ = std::set<std::string>(all.begin(), all.end()).size() == all.size();
      allocator.name = differ ? allocator.allocator.asked.value_or(allocator.name)
                              : allocator.name + " (" + allocator.allocator.sha256.substr(0, 8) + ")";
    }
  }

  static void fill_place(BoardCell& summary, const Cell& cell, std::size_t index) {
    if (cell.verification && cell.outcome != outcomes::not_replayed) {
      summary.faults = cell.verification->faults;
      if (!cell.verification->findings.empty()) summary.finding = cell.verification->findings.front();
      if (cell.outcome == outcomes::verified) {
        if (summary.state == "missing") summary.state = "verified only";
        return;
      }
    }
    if (summary.state != "missing" && summary.state != "verified only") return;  // the first cell of a place is shown
    summary.index = index;
    summarise(summary, cell);
  }

  Board& board_;
  std::vector<std::string> rows_, columns_;
};

/// Computes the geometric means. They are over the traces that every ranked allocator was measured on. An allocator is
/// ranked if it was measured on at least half of the traces: otherwise it would leave few traces for the means of all.
void rank(Board& board) {
  const std::size_t rows = board.traces.size(), columns = board.allocators.size();
  for (std::size_t column = 0; column < columns; ++column) {
    BoardAllocator& allocator = board.allocators[column];
    for (std::size_t row = 0; row < rows; ++row) {
      const BoardCell& cell = board.at(row, column);
      allocator.traces += cell.is_measured() ? 1 : 0;
      if (cell.faults) allocator.faults = allocator.faults.value_or(0) + *cell.faults;
    }
    allocator.is_ranked = allocator.traces > 0 && 2 * allocator.traces >= rows;
  }
  std::vector<std::size_t> counted;
  for (std::size_t row = 0; row < rows; ++row) {
    bool is_whole = true;
    for (std::size_t column = 0; column < columns; ++column)
      is_whole = is_whole && (!board.allocators[column].is_ranked || board.at(row, column).time.is_known());
    if (is_whole) counted.push_back(row);
  }
  board.counted_traces = counted.size();
  for (std::size_t column = 0; column < columns; ++column) {
    BoardAllocator& allocator = board.allocators[column];
    if (!allocator.is_ranked) continue;
    std::vector<RatioSamples> times, peaks, means, before_teardown;
    for (const std::size_t row : counted) {
      const Cell& cell = board.cells[board.at(row, column).index];
      times.push_back(time_samples(cell));
      peaks.push_back(memory_samples(cell, &MemoryFigures::peak));
      means.push_back(memory_samples(cell, &MemoryFigures::mean));
      before_teardown.push_back(before_teardown_samples(cell));
    }
    allocator.time = geometric_mean(times);
    allocator.peak = geometric_mean(peaks);
    allocator.mean = geometric_mean(means);
    allocator.before_teardown = geometric_mean(before_teardown);
  }
}

/// Lists the machines, and by how much they differ: by the times of the reference, which every session of a trace ran.
void compare_nodes(Board& board) {
  std::map<std::string, std::map<std::string, double>> reference_ns;  // by trace and session
  for (const Cell& cell : board.cells) {
    if (!cell.is_measured()) continue;
    const auto same = [&cell](const BoardNode& node) {
      return node.node == cell.node && node.machine.cpu == cell.machine.cpu &&
             node.machine.kernel == cell.machine.kernel;
    };
    auto node = std::find_if(board.nodes.begin(), board.nodes.end(), same);
    if (node == board.nodes.end()) node = board.nodes.insert(node, {.node = cell.node, .machine = cell.machine});
    ++node->cells;
    const double time = median(cell.reference_runs.wall_ns);
    if (time > 0) reference_ns[cell.trace.sha256][cell.session] = time;
  }
  for (const auto& [trace, sessions] : reference_ns) {
    double least = INFINITY, most = 0;
    for (const auto& [session, time] : sessions) {
      least = std::min(least, time);
      most = std::max(most, time);
    }
    board.node_spread = std::max(board.node_spread, most / least - 1);
  }
}

/// Removes the cells that cannot be compared with the expected ones. Returns how many of them are of the same traces
/// and allocators.
std::size_t leave_out(std::vector<Cell>& cells, const std::vector<Cell>& expected) {
  const Cell& first = expected.front();
  std::set<std::pair<std::string, std::string>> places;
  for (const Cell& cell : expected) places.emplace(cell.row_key(), cell.column_key());
  std::size_t count = 0;
  std::erase_if(cells, [&](const Cell& cell) {
    const bool is_comparable = has_same_options(cell, first) && cell.has_same_reference(first);
    if (!is_comparable) count += places.count({cell.row_key(), cell.column_key()});
    return !is_comparable;
  });
  return count;
}

/// Sorts cells so that the wanted one of a place is first: the board shows the first.
void put_wanted_first(std::vector<Cell>& cells, const std::vector<Cell>& expected) {
  std::set<std::string> keys;
  std::map<std::string, std::size_t> builds;
  for (const Cell& cell : expected) keys.insert(cell_key(cell));
  for (const Cell& cell : cells) ++builds[cell.build.value_or("")];
  std::vector<std::tuple<bool, std::size_t, std::size_t>> order;  // unwanted, rarer builds last
  for (std::size_t i = 0; i < cells.size(); ++i)
    order.emplace_back(keys.count(cell_key(cells[i])) == 0, cells.size() - builds[cells[i].build.value_or("")], i);
  std::sort(order.begin(), order.end());
  std::vector<Cell> sorted;
  for (const auto& [is_unwanted, rarity, index] : order) sorted.push_back(std::move(cells[index]));
  cells = std::move(sorted);
}

}  // namespace

std::uint64_t Board::measured() const {
  return static_cast<std::uint64_t>(
      std::count_if(summaries.begin(), summaries.end(), [](const BoardCell& cell) { return cell.is_measured(); }));
}

std::vector<Cell> Board::placed_cells() const {
  std::vector<Cell> placed;
  for (const BoardCell& cell : summaries) {
    if (cell.state != "missing" && cell.state != "verified only") placed.push_back(cells[cell.index]);
  }
  return placed;
}

Board make_board(std::vector<Cell> cells, const std::vector<Cell>& expected) {
  const std::size_t left_out = expected.empty() ? 0 : leave_out(cells, expected);
  put_wanted_first(cells, expected);
  Board board{.left_out = left_out, .cells = std::move(cells)};
  check_comparable(board.cells);
  if (!board.cells.empty())
    board.reference = board.cells.front().reference.name;
  else if (!expected.empty())
    board.reference = expected.front().reference.name;
  BoardBuilder(board, expected).fill();
  rank(board);
  compare_nodes(board);
  board.builds = find_builds(board.placed_cells());
  return board;
}

}  // namespace cmt::replay
