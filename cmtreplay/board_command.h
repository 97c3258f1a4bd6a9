/// Shows a board or a gate in the form that the options ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/board/board.h"
#include "cmtreplay/matrix/cell_store.h"
#include "cmtreplay/options.h"
#include "toolkit/files/output_file.h"

namespace cmt::replay {

/// The file that a board is written to, as a picture or as Markdown. It is opened before the work begins, so that an
/// error is reported then.
class BoardFile {
 public:
  explicit BoardFile(const std::string& path);
  void write(const Board& board);

 private:
  std::string path_;
  std::optional<files::OutputFile> markdown_;
  std::optional<picture::PictureFile> picture_;
};

/// Prints the board. Returns the exit status, which is 1 if a cell is missing or was not measured.
int show_board(const Board& board, const Options& options, BoardFile& file);

/// Judges the board's cells against the old build, or against the baseline, and prints the result. Returns the exit
/// status.
int show_gate(Board board, const std::vector<Cell>& baseline, const Options& options, BoardFile& file);

/// Prints the cells of --scoreboard. If no options of the runs are given, it takes those that all cells have.
/// `expected`: as for make_board(). Throws std::runtime_error if there are no cells, or several sets of options.
int show_scoreboard(std::vector<Cell> expected, const Options& options, BoardFile& file);

/// Reports the files that could not be read, one line each.
void complain_of(const std::vector<DamagedFile>& files, const std::string& consequence);

}  // namespace cmt::replay
