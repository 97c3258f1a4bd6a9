#pragma once

#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// A cell from its JSON. Throws FormatError that names the path, and std::system_error.
Cell read_cell(const std::string& path);

/// The cells of a folder, by their files' names; or of a file that has a list "cells", as --json writes it. Throws as
/// read_cell().
std::vector<Cell> read_cells(const std::string& path);

/// A folder with one file for each cell. Several processes may write to it at once, also from several machines: a file
/// appears whole, and where two processes have the same cell the first one stays.
class CellStore {
 public:
  /// Makes the folder where there is none. Throws std::system_error.
  explicit CellStore(std::string folder);

  const std::string& folder() const { return folder_; }
  std::string path_of(const Cell& cell) const { return folder_ + "/" + cell_file_name(cell); }
  bool has(const Cell& cell) const;

  /// Returns false where the cell is there already. Throws std::system_error.
  bool store(const Cell& cell) const;

 private:
  std::string folder_;
};

}  // namespace cmt::replay
