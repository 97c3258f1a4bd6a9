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

/// A file of a board: a picture, or Markdown. Opened before the work begins, so that an error shows then.
class BoardFile {
 public:
  explicit BoardFile(const std::string& path);
  void write(const Board& board);

 private:
  std::string path_;
  std::optional<files::OutputFile> markdown_;
  std::optional<picture::PictureFile> picture_;
};

/// Prints the board. Returns the exit status: 1 where a cell is missing, or ended in another way than measured.
int show_board(const Board& board, const Options& options, BoardFile& file);

/// Judges the board's cells by the old build, or by those of the baseline, and prints that. Returns the exit status.
int show_gate(Board board, const std::vector<Cell>& baseline, const Options& options, BoardFile& file);

/// Prints the cells of --scoreboard. Where no options of the runs are given, those that all cells have are taken.
/// `expected`: as make_board() has it. Throws std::runtime_error where there are no cells, or several sets of options.
int show_scoreboard(std::vector<Cell> expected, const Options& options, BoardFile& file);

/// Says which files could not be read, a line each.
void complain_of(const std::vector<DamagedFile>& files, const std::string& consequence);

}  // namespace cmt::replay
