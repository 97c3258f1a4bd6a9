/// Compares the options of cells: a board is of one set of options.
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// Whether two cells have options with which they can be on one board. A verification can be on every board.
bool has_same_options(const Cell& a, const Cell& b);

/// The options of a cell as a command line gives them: "--runs=2 --touch=none".
std::string options_text(const Cell& cell);

/// One cell for each set of options among those that were measured, in the order of their first cells.
std::vector<Cell> option_sets(const std::vector<Cell>& cells);

/// "--runs=2 (4 cells), --budget=10s (1 cell)".
std::string option_sets_text(const std::vector<Cell>& cells);

/// Keeps the cells with the options of `wanted`, and all verifications. Returns how many cells it removed.
std::size_t keep_options_of(std::vector<Cell>& cells, const Cell& wanted);

}  // namespace cmt::replay
