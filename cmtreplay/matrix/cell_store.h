/// The folder of cells (--results), to which several processes and machines may write at once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// A cell from its JSON. Throws FormatError that names the path, and std::system_error.
Cell read_cell(const std::string& path);

/// A file that is no cell, or a damaged one.
struct DamagedFile {
  std::string path = {};
  std::string fault = {};  ///< with the place: "cells/a.json:3: no JSON"
};

struct ReadCells {
  std::vector<Cell> cells = {};
  std::vector<DamagedFile> damaged = {};
};

/// The cells of a folder, by their files' names; or of a file that has a list "cells", as --json writes it. Files of
/// the folder that are no cells are listed. Throws FormatError for a damaged file that is not of a folder, and
/// std::system_error.
ReadCells read_cells(const std::string& path);

/// A folder with one file for each cell. Several processes may write to it at once, also from several machines: a file
/// appears whole, and where two processes have the same cell the first one stays.
class CellStore {
 public:
  /// Makes the folder where there is none. Throws std::system_error.
  explicit CellStore(std::string folder);

  const std::string& folder() const { return folder_; }
  /// Whether it is there, under whatever name of its trace, and not damaged.
  bool has(const Cell& cell) const;
  /// The same of a cell that counts as this one for a cluster: libc of any build.
  bool has_place(const Cell& cell) const;

  /// All cells, and the files that are none, which count as missing from then on: to be called at first, so that a
  /// damaged file shows before hours of work.
  ReadCells read();

  /// Returns false where the cell is there already; a damaged file is replaced. Throws std::system_error.
  bool store(const Cell& cell);

  /// The damaged files that are still there.
  const std::set<std::string>& damaged() const { return damaged_; }

 private:
  std::string path_of(const Cell& cell) const { return folder_ + "/" + cell_file_name(cell); }

  std::string folder_;
  std::set<std::string> damaged_;  ///< their paths
  std::set<std::string> keys_;     ///< of the cells that were read or stored
  std::set<std::string> places_;
};

}  // namespace cmt::replay
