// Prints boards and gates, and derives the exit status from missing or failed cells.
#include "cmtreplay/board_command.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "cmtreplay/matrix/cell_options.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

constexpr int status_worse = 3;

/// Whether the cell's place is one of these.
bool has_place(const Cell& cell, const std::vector<Cell>& places) {
  return std::any_of(places.begin(), places.end(), [&cell](const Cell& place) {
    return place.row_key() == cell.row_key() && place.column_key() == cell.column_key();
  });
}

/// The set of options whose cells are shown: the one that is given, else the only one.
Cell shown_options(const std::vector<Cell>& cells, const std::vector<Cell>& expected, const Options& options) {
  const std::vector<Cell> sets = option_sets(cells);
  const Cell given{.mode = describe_mode(options, options.trace), .plan = describe_plan(options, options.trace, false)};
  if (sets.empty() || options.has_run_options) {
    const auto is_given = [&given](const Cell& set) { return has_same_options(set, given); };
    if (expected.empty() && !sets.empty() && std::none_of(sets.begin(), sets.end(), is_given))
      throw std::runtime_error(options.matrix.scoreboard +
                               ": no cell was replayed with these options; there are: " + option_sets_text(cells));
    return given;
  }
  if (sets.size() > 1)
    throw std::runtime_error(options.matrix.scoreboard +
                             ": cells were replayed with different options, and cannot be compared: " +
                             option_sets_text(cells) + "; give the options of one of them");
  return sets.front();
}

}  // namespace

BoardFile::BoardFile(const std::string& path) : path_(path) {
  if (path.ends_with(".md"))
    markdown_.emplace(path);
  else if (!path.empty())
    picture_.emplace(path);
}

void BoardFile::write(const Board& board) {
  if (markdown_) {
    process::write_all(markdown_->fd(), board_markdown(board), path_);
    markdown_->commit();
  } else if (picture_) {
    picture_->write(board_picture(board, path_.ends_with(".html")), board_json(board));
    if (!picture_->remark().empty()) command::complain("cmtreplay", path_ + ": " + std::string(picture_->remark()));
  }
}

int show_board(const Board& board, const Options& options, BoardFile& file) {
  command::do_both(
      [&] {
        command::print(options.json ? board_json(board) : options.csv ? board_csv(board) : board_text(board));
      },
      [&] { file.write(board); });
  const auto is_good = [](const BoardCell& cell) {
    return cell.faults.value_or(0) == 0 && (cell.is_measured() || cell.state == "verified only");
  };
  return board.damaged.empty() && std::all_of(board.summaries.begin(), board.summaries.end(), is_good) ? 0 : 1;
}

int show_gate(Board board, const std::vector<Cell>& baseline, const Options& options, BoardFile& file) {
  const MatrixChoice& choice = options.matrix;
  const std::vector<Cell> cells = board.placed_cells();
  if (choice.baseline.empty()) {
    board.gate = judge_against(cells, choice.limits);
  } else {
    std::vector<std::string> remarks;
    board.gate = judge_baseline(cells, baseline, choice.limits, remarks);
    for (const std::string& text : remarks) command::complain("cmtreplay", text);
  }
  const std::vector<Judgement>& gate = board.gate;
  command::do_both(
      [&] {
        command::print(options.json ? board_json(board) : options.csv ? gate_csv(gate) : gate_text(gate));
      },
      [&] { file.write(board); });
  const auto is_worse = [](const Judgement& judgement) { return judgement.is_worse; };
  if (std::any_of(board.gate.begin(), board.gate.end(), is_worse)) return status_worse;
  const auto is_judged = [](const Judgement& judgement) { return judgement.is_judged; };
  return board.missing != 0 || !std::all_of(board.gate.begin(), board.gate.end(), is_judged) ? 1 : 0;
}

int show_scoreboard(std::vector<Cell> expected, const Options& options, BoardFile& file) {
  ReadCells read = read_cells(options.matrix.scoreboard);
  complain_of(read.damaged, "");
  if (read.cells.empty()) throw std::runtime_error(options.matrix.scoreboard + ": has no cells");
  std::vector<Cell> candidates = read.cells;
  if (!expected.empty()) std::erase_if(candidates, [&](const Cell& cell) { return !has_place(cell, expected); });
  const Cell shown = shown_options(candidates, expected, options);
  for (Cell& cell : expected) {
    cell.mode = shown.mode;
    cell.plan = shown.plan;
  }
  const std::size_t others = expected.empty() ? keep_options_of(read.cells, shown) : 0;
  Board board = make_board(std::move(read.cells), expected);
  board.left_out += others;
  for (const DamagedFile& damaged : read.damaged) board.damaged.push_back(damaged.fault);
  return show_board(board, options, file);
}

void complain_of(const std::vector<DamagedFile>& files, const std::string& consequence) {
  for (const DamagedFile& damaged : files) command::complain("cmtreplay", damaged.fault + consequence);
}

}  // namespace cmt::replay
