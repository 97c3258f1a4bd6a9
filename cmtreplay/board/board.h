/// The board: the cells of a matrix put together as one table of traces and allocators, with ratios to the reference.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/board/builds.h"
#include "cmtreplay/board/gate.h"
#include "cmtreplay/board/ratios.h"
#include "cmtreplay/matrix/cell.h"
#include "toolkit/picture/picture.h"

namespace cmt::replay {

inline constexpr std::string_view board_schema = "cmt.board/1";

/// The figures of a cell that the board shows. Ratios are to the reference on the same trace.
struct BoardCell {
  std::string trace = {};
  std::string allocator = {};
  std::string state = {};  ///< why it was not measured: outcome and reason; empty: it was
  Ratio time = {}, peak = {}, mean = {}, before_teardown = {};
  double ns_per_call = Ratio::none;
  std::optional<std::uint64_t> peak_bytes = {}, mean_bytes = {}, before_teardown_bytes = {};
  double fragmentation = Ratio::none;
  double p999_ns = Ratio::none;
  std::optional<std::uint64_t> minor_faults = {};
  std::optional<std::uint64_t> faults = {};
  std::optional<std::string> finding = {};
  std::size_t index = 0;  ///< in Board::cells

  bool is_measured() const { return state.empty(); }
};

template <class Visitor, output::DescribedAs<BoardCell> C>
void describe(Visitor& field, C& cell) {
  field("trace", cell.trace, "its name");
  field("allocator", cell.allocator, "its name");
  field("state", cell.state, "empty: it was measured; else missing, or how it ended");
  field("time", cell.time, "wall time, by the rounds that both ran in");
  field("peak", cell.peak, "peak resident bytes");
  field("mean", cell.mean, "resident bytes over the recorded time");
  field("ns_per_call", cell.ns_per_call, "median wall time of a call, with the replay's own");
  field("peak_resident_bytes", cell.peak_bytes, "median of the memory runs");
  field("mean_resident_bytes", cell.mean_bytes, "median of the memory runs");
  field("fragmentation", cell.fragmentation, "resident over live bytes where most are live");
  field("malloc_p999_ns", cell.p999_ns, "99.9 % of the calls of malloc took no longer");
  field("minor_faults", cell.minor_faults, "median of the timed runs");
  field("faults", cell.faults, "faults that --verify has found; null: not verified");
  field("finding", cell.finding, "the first of these, in words; null: there is none");
  field("before_teardown", cell.before_teardown,
        "resident bytes before the tear-down, or at the end; not known of cells of older versions");
  field("before_teardown_resident_bytes", cell.before_teardown_bytes, "median of the memory runs");
}

/// A column of the board: an allocator.
struct BoardAllocator {
  std::string name = {};
  CellAllocator allocator = {};
  Ratio time = {}, peak = {}, mean = {}, before_teardown = {};  ///< geometric means
  std::uint64_t traces = 0;                                     ///< on which it was measured
  bool is_ranked = false;
  std::optional<std::uint64_t> faults = {};
};

template <class Visitor, output::DescribedAs<BoardAllocator> A>
void describe(Visitor& field, A& allocator) {
  field("name", allocator.name, "as the board shows it");
  field("allocator", allocator.allocator, "");
  field("time", allocator.time, "geometric mean over the traces of all ranked allocators");
  field("peak", allocator.peak, "geometric mean of peak resident bytes");
  field("mean", allocator.mean, "geometric mean of resident bytes over the recorded time");
  field("traces", allocator.traces, "that it was measured on");
  field("ranked", allocator.is_ranked, "whether it was measured on half of the traces or more");
  field("faults", allocator.faults, "faults that --verify has found on all traces; null: not verified");
  field("before_teardown", allocator.before_teardown, "geometric mean of resident bytes before the tear-down");
}

/// A machine that cells were measured on.
struct BoardNode {
  std::string node = {};
  Machine machine = {};
  std::uint64_t cells = 0;
};

template <class Visitor, output::DescribedAs<BoardNode> N>
void describe(Visitor& field, N& node) {
  field("node", node.node, "its name");
  field("machine", node.machine, "");
  field("cells", node.cells, "measured on it");
}

/// The whole board.
struct Board {
  std::string reference = {};
  std::vector<CellTrace> traces = {};
  std::vector<BoardAllocator> allocators = {};
  std::vector<BoardCell> summaries = {};  ///< trace by trace
  std::uint64_t counted_traces = 0;       ///< traces in the geometric means
  std::uint64_t missing = 0;
  std::uint64_t left_out = 0;
  std::vector<std::string> damaged = {};
  std::vector<BoardNode> nodes = {};
  std::vector<BoardBuild> builds = {};
  double node_spread = 0;
  std::vector<Judgement> gate = {};
  std::vector<Cell> cells = {};

  const BoardCell& at(std::size_t trace, std::size_t allocator) const {
    assert(trace < traces.size() && allocator < allocators.size());
    return summaries[trace * allocators.size() + allocator];
  }
  std::uint64_t measured() const;
  /// The cells of its traces and allocators, in order, without the places whose cell is missing.
  std::vector<Cell> placed_cells() const;
};

template <class Visitor, output::DescribedAs<Board> B>
void describe(Visitor& field, B& board) {
  field("schema", board_schema, "the name and version of this form");
  field("reference", board.reference, "the allocator that ratios are to");
  field("traces", board.traces, "");
  field("allocators", board.allocators, "");
  field("summaries", board.summaries, "each trace on each allocator");
  field("counted_traces", board.counted_traces, "that the geometric means are of: measured on all ranked allocators");
  field("missing_cells", board.missing, "that are not there");
  field("left_out_cells", board.left_out, "of these traces and allocators, but of other options or builds");
  field("damaged_files", board.damaged, "that could not be read, with the faults");
  field("nodes", board.nodes, "the machines that cells were measured on");
  field("builds", board.builds, "of allocators, and of cmtreplay, where there are several under one name");
  field("node_spread", board.node_spread,
        "by how much the reference's time on one trace differs at most between sessions, as a share");
  field("gate", board.gate, "what --against or --baseline has judged");
  field("cells", board.cells, "all that was measured, of schema cmt.cell/1");
}

/// Makes a board of cells. `expected` has the cells that should be there, in the order of traces and allocators. If it
/// is empty, these are all traces on all allocators that occur. If a place has several cells, the board shows the one
/// of the expected builds, or else of the build of cmtreplay that most cells were made with. Throws std::runtime_error
/// if cells cannot be compared: they were replayed with different options or references.
Board make_board(std::vector<Cell> cells, const std::vector<Cell>& expected);

/// One line on the kinds of intervals: "intervals: time, 95 %; memory, range of 3 runs".
std::string intervals_text(const Board& board);
/// For people: a table for each figure, with the traces as rows and the allocators as columns.
std::string board_text(const Board& board);
/// The same tables, for a page.
std::vector<picture::NumberTable> board_tables(const Board& board);
/// The lines below these tables: how to read the figures, and what is missing.
std::string board_notes(const Board& board);
/// For a README, in Markdown: the geometric means as a table, and the matrix.
std::string board_markdown(const Board& board);
/// For spreadsheets: a row for each cell.
std::string board_csv(const Board& board);
/// Time against memory, the matrix as maps, and the memory along each trace. `tables` adds the tables of board_text(),
/// which are higher than the rest.
picture::Picture board_picture(const Board& board, bool tables);
/// For programs: schema cmt.board/1.
std::string board_json(const Board& board);

}  // namespace cmt::replay
