// The board as text: tables, Markdown, CSV and JSON.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cmtreplay/board/board.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

using output::bytes_text;
using output::fixed;

constexpr const char* no_number = "-";

std::string number_text(double number, int decimals) {
  return std::isnan(number) ? no_number : fixed(number, decimals);
}

/// "0.83 (0.81 - 0.85)", or without the interval if that has no width.
std::string ratio_text(const Ratio& ratio) {
  if (!ratio.is_known()) return no_number;
  const std::string low = fixed(ratio.low, 2), high = fixed(ratio.high, 2), middle = fixed(ratio.ratio, 2);
  return low == high ? middle : middle + " (" + low + " - " + high + ")";
}

/// The first word of a state: "died", "refused", "missing".
std::string short_state(const std::string& state) {
  std::string text = state.substr(0, state.find(':'));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// A row of the CSV, and of what the tables for people show of a cell.
struct BoardRow {
  BoardCell cell = {};
  CellTrace trace = {};
};

template <class Visitor, output::DescribedAs<BoardRow> Row>
void describe(Visitor& field, Row& row) {
  const BoardCell& cell = row.cell;
  field("trace", cell.trace, "");
  field("allocator", cell.allocator, "");
  field("state", cell.is_measured() ? std::string("measured") : cell.state, "");
  field("events", row.trace.events, "");
  field("threads", row.trace.threads, "");
  field("time_ratio", cell.time.ratio, "");
  field("time_ratio_low", cell.time.low, "");
  field("time_ratio_high", cell.time.high, "");
  field("time_interval", cell.time.interval, "");
  field("peak_ratio", cell.peak.ratio, "");
  field("mean_ratio", cell.mean.ratio, "");
  field("ns_per_call", cell.ns_per_call, "");
  field("peak_resident_bytes", cell.peak_bytes, "");
  field("mean_resident_bytes", cell.mean_bytes, "");
  field("fragmentation", cell.fragmentation, "");
  field("malloc_p999_ns", cell.p999_ns, "");
  field("minor_faults", cell.minor_faults, "");
  field("faults", cell.faults, "");
  field("before_teardown_ratio", cell.before_teardown.ratio, "");
  field("before_teardown_resident_bytes", cell.before_teardown_bytes, "");
}

/// One figure of all cells, for people.
struct Figure {
  std::string title;
  output::Columns<BoardRow> column;
  Ratio BoardAllocator::*mean = nullptr;  ///< the geometric mean; null: has none

  std::string text(const BoardRow& row) const { return column.cells(row).front(); }
};

/// A figure that is a field of the CSV, in a form for people.
Figure field_figure(const std::string& title, const std::string& key, const output::Form& form) {
  Figure figure{title, {}};
  figure.column.add(title, key, form);
  return figure;
}

Figure ratio_figure(const std::string& title, Ratio BoardCell::*ratio, Ratio BoardAllocator::*mean) {
  Figure figure{title, {}, mean};
  figure.column.add_computed(title, [ratio](const BoardRow& row) { return ratio_text(row.cell.*ratio); });
  return figure;
}

std::string one_decimal(double number) { return number_text(number, 1); }
std::string two_decimals(double number) { return number_text(number, 2); }
std::string no_decimals(double number) { return number_text(number, 0); }

std::vector<Figure> figures() {
  return {ratio_figure("time, to", &BoardCell::time, &BoardAllocator::time),
          ratio_figure("peak memory, to", &BoardCell::peak, &BoardAllocator::peak),
          ratio_figure("mean memory, to", &BoardCell::mean, &BoardAllocator::mean),
          ratio_figure("memory before tear-down, to", &BoardCell::before_teardown, &BoardAllocator::before_teardown),
          field_figure("ns a call", "ns_per_call", one_decimal),
          field_figure("peak", "peak_resident_bytes", bytes_text),
          field_figure("mean", "mean_resident_bytes", bytes_text),
          field_figure("before tear-down", "before_teardown_resident_bytes", bytes_text),
          field_figure("fragmentation", "fragmentation", two_decimals),
          field_figure("p99.9 of malloc, ns", "malloc_p999_ns", no_decimals),
          field_figure("page faults", "minor_faults", output::with_commas)};
}

std::string faults_text(const std::optional<std::uint64_t>& faults) {
  return faults ? output::with_commas(*faults) : no_number;
}

picture::NumberTable figure_table(const Board& board, const Figure& figure) {
  const std::string title = figure.mean ? figure.title + " " + board.reference : figure.title;
  picture::NumberTable table{{title}, {}};
  for (const BoardAllocator& allocator : board.allocators) table.titles.push_back(text::to_line(allocator.name));
  for (std::size_t row = 0; row < board.traces.size(); ++row) {
    std::vector<std::string> cells{text::to_line(board.traces[row].name)};
    for (std::size_t column = 0; column < board.allocators.size(); ++column) {
      const BoardCell& cell = board.at(row, column);
      cells.push_back(cell.is_measured() ? figure.text({cell, board.traces[row]}) : short_state(cell.state));
    }
    table.rows.push_back(cells);
  }
  if (figure.mean && board.traces.size() > 1) {
    std::vector<std::string> cells{"geometric mean"};
    for (const BoardAllocator& allocator : board.allocators) cells.push_back(ratio_text(allocator.*figure.mean));
    table.rows.push_back(cells);
  }
  return table;
}

bool is_verified(const Board& board) {
  return std::any_of(board.allocators.begin(), board.allocators.end(),
                     [](const BoardAllocator& allocator) { return allocator.faults.has_value(); });
}

/// Adds the names of missing cells if they are few, and their number.
void add_missing(const Board& board, std::vector<std::string>& lines) {
  constexpr std::uint64_t named_max = 10;
  if (board.missing == 0) return;
  for (const BoardCell& cell : board.summaries) {
    if (cell.state == "missing" && board.missing <= named_max)
      lines.push_back("missing: " + cell.trace + " on " + cell.allocator);
  }
  lines.push_back(output::counted(board.missing, "cell") + " of " + output::with_commas(board.summaries.size()) +
                  " missing" + (board.missing <= named_max ? "" : "; --csv names them"));
}

/// The kinds of intervals that occur, each once.
class IntervalWords {
 public:
  void add(const Ratio& ratio) {
    if (ratio.is_known()) words_.insert(ratio.interval);
  }
  /// "95 %", "range of 10 runs or range of 3 runs".
  std::string text() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " or ") + word;
    return text.empty() ? "not known" : text;
  }

 private:
  std::set<std::string> words_;
};

/// Adds a line for each kind of warning, with the number of cells that have it.
void add_warnings(const Board& board, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::uint64_t>> kinds;
  for (const Cell& cell : board.placed_cells()) {
    std::set<std::string> seen;
    for (const Warning& warning : cell.warnings.value_or(std::vector<Warning>())) {
      if (!seen.insert(warning.kind).second) continue;
      const auto is_same = [&warning](const auto& kind) { return kind.first == warning.kind; };
      auto found = std::find_if(kinds.begin(), kinds.end(), is_same);
      if (found == kinds.end()) found = kinds.insert(found, {warning.kind, 0});
      ++found->second;
    }
  }
  for (const auto& [kind, count] : kinds) lines.push_back(output::counted(count, "cell") + ": " + kind);
}

/// The lines below the tables.
std::vector<std::string> notes(const Board& board) {
  std::vector<std::string> lines;
  if (board.measured() != 0) lines.push_back(intervals_text(board));
  if (board.counted_traces != board.traces.size() && board.measured() != 0)
    lines.push_back("geometric means are of " + output::counted(board.counted_traces, "trace") +
                    ", which all ranked allocators have; an allocator is ranked that has half of the traces");
  for (const BoardCell& cell : board.summaries) {
    if (!cell.is_measured() && cell.state != "missing" && cell.state != "verified only")
      lines.push_back(cell.trace + ": " + cell.allocator + ": " + cell.state);
    if (cell.faults.value_or(0) != 0)
      lines.push_back(cell.trace + ": " + cell.allocator + ": broke " + output::counted(*cell.faults, "promise") +
                      " (--verify)" + (cell.finding ? ": " + *cell.finding : ""));
  }
  const auto is_broken = [](const BoardCell& cell) { return cell.faults.value_or(0) != 0; };
  if (std::any_of(board.summaries.begin(), board.summaries.end(), is_broken))
    lines.push_back("--verify of one allocator on one trace lists its faults, and how to stop before the first in gdb");
  add_missing(board, lines);
  if (board.left_out != 0)
    lines.push_back(output::counted(board.left_out, "cell") +
                    " of these traces and allocators left out, of other options or builds");
  for (const std::string& file : board.damaged) lines.push_back("could not be read: " + file);
  add_warnings(board, lines);
  const auto crowded =
      std::any_of(board.cells.begin(), board.cells.end(), [](const Cell& cell) { return cell.is_crowded; });
  if (crowded)
    lines.push_back("some traces have more threads at once than there are CPUs: their times are not meaningful");
  for (const BoardNode& node : board.nodes)
    lines.push_back("measured on " + (board.nodes.size() > 1 ? node.node + ", " : "") +
                    node.machine.cpu.value_or("an unknown processor") + ", " + node.machine.kernel + ": " +
                    output::counted(node.cells, "cell"));
  for (const std::string& line : build_lines(board.builds)) lines.push_back(line);
  if (board.node_spread > 0)
    lines.push_back("between sessions the time of " + board.reference + " on one trace differs by up to " +
                    fixed(100 * board.node_spread, 1) + " %; ratios are within a session");
  return lines;
}

/// A text as a cell of a Markdown table. Characters that mean something to Markdown or HTML are escaped.
std::string markdown(const std::string& words) {
  std::string escaped;
  for (const char c : text::to_line(words)) {
    if (std::string_view("\\`*_{}[]<>|&#~!").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string markdown_rule(std::size_t columns) {
  std::string text = "|---|";
  for (std::size_t i = 1; i < columns; ++i) text += "---:|";
  return text + "\n";
}

}  // namespace

std::string intervals_text(const Board& board) {
  IntervalWords times, memory, means;
  for (const BoardCell& cell : board.summaries) {
    times.add(cell.time);
    memory.add(cell.peak);
    memory.add(cell.mean);
  }
  for (const BoardAllocator& allocator : board.allocators) means.add(allocator.time);
  const bool is_same = board.traces.size() < 2 || means.text() == times.text();
  return "intervals: time, " + times.text() + (is_same ? "" : " (geometric means: " + means.text() + ")") +
         "; memory, " + memory.text();
}

std::vector<picture::NumberTable> board_tables(const Board& board) {
  std::vector<picture::NumberTable> tables;
  if (board.measured() != 0) {
    for (const Figure& figure : figures()) tables.push_back(figure_table(board, figure));
  }
  if (is_verified(board)) {
    Board copy = board;  // so that cells that were only verified show their faults
    for (BoardCell& cell : copy.summaries) cell.state = cell.faults ? "" : cell.state;
    tables.push_back(figure_table(copy, field_figure("faults", "faults", output::with_commas)));
  }
  return tables;
}

std::string board_text(const Board& board) {
  std::string text;
  for (const picture::NumberTable& table : board_tables(board)) {
    output::Table lines(table.titles);
    for (const std::vector<std::string>& row : table.rows) lines.add(row);
    text += lines.text() + "\n";
  }
  return text + board_notes(board);
}

std::string board_notes(const Board& board) {
  std::string text;
  for (const std::string& line : notes(board)) text += text::to_line(line) + "\n";
  return text;
}

std::string board_markdown(const Board& board) {
  std::vector<const BoardAllocator*> order;
  for (const BoardAllocator& allocator : board.allocators) order.push_back(&allocator);
  std::stable_sort(order.begin(), order.end(), [](const BoardAllocator* a, const BoardAllocator* b) {
    return a->time.is_known() && (!b->time.is_known() || a->time.ratio < b->time.ratio);
  });
  std::string text =
      markdown_row({"allocator", "time", "peak memory", "mean memory", "traces", "faults"}) + markdown_rule(6);
  for (const BoardAllocator* allocator : order) {
    text += markdown_row({markdown(allocator->name), ratio_text(allocator->time), ratio_text(allocator->peak),
                          ratio_text(allocator->mean),
                          std::to_string(allocator->traces) + " of " + std::to_string(board.traces.size()),
                          faults_text(allocator->faults)});
  }
  text += "\nGeometric means over " + output::counted(board.counted_traces, "trace") + ", " +
          markdown(board.reference) + " = 1. Less is better.\n";
  for (const auto& [title, figure] :
       {std::pair("Time", &BoardCell::time), std::pair("Peak memory", &BoardCell::peak)}) {
    std::vector<std::string> titles{title};
    for (const BoardAllocator& allocator : board.allocators) titles.push_back(markdown(allocator.name));
    text += "\n" + markdown_row(titles) + markdown_rule(titles.size());
    for (std::size_t row = 0; row < board.traces.size(); ++row) {
      std::vector<std::string> cells{markdown(board.traces[row].name)};
      for (std::size_t column = 0; column < board.allocators.size(); ++column) {
        const BoardCell& cell = board.at(row, column);
        cells.push_back(cell.is_measured() ? number_text((cell.*figure).ratio, 2) : markdown(short_state(cell.state)));
      }
      text += markdown_row(cells);
    }
  }
  std::vector<std::string> lines = gate_lines(board.gate);
  for (const std::string& line : notes(board)) lines.push_back(line);
  if (!lines.empty()) text += "\n";
  for (const std::string& line : lines) text += "- " + markdown(line) + "\n";
  return text;
}

std::string board_csv(const Board& board) {
  std::string text = output::csv_titles<BoardRow>();
  for (std::size_t i = 0; i < board.summaries.size(); ++i)
    text += output::csv_row(BoardRow{board.summaries[i], board.traces[i / board.allocators.size()]});
  return text;
}

std::string board_json(const Board& board) { return output::json_text(board); }

}  // namespace cmt::replay
