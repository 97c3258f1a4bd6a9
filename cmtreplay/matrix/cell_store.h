/// The folder of cells (--results), to which several processes and machines may write at once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// Reads a cell from its JSON. Throws a FormatError that names the path, and std::system_error.
Cell read_cell(const std::string& path);

/// A file that is no cell, or is damaged.
struct DamagedFile {
  std::string path = {};
  std::string fault = {};  ///< with the place: "cells/a.json:3: not valid JSON"
};

struct ReadCells {
  std::vector<Cell> cells = {};
  std::vector<DamagedFile> damaged = {};
};

/// Reads the cells of a folder in the order of the files' names, and lists the files that are no cells. `path` may also
/// be a file with a list "cells", as --json writes it. Throws FormatError if such a file is damaged, and
/// std::system_error.
ReadCells read_cells(const std::string& path);

/// A folder with one file for each cell. Several processes may write to it at once, also from several machines. A file
/// appears whole, and if two processes have the same cell, the first one stays.
class CellStore {
 public:
  /// Makes the folder if there is none. Throws std::system_error.
  explicit CellStore(std::string folder);

  const std::string& folder() const { return folder_; }
  /// Whether the cell is there and not damaged, whatever the name of its trace.
  bool has(const Cell& cell) const;
  /// Whether a cell is there that counts as this one for a cluster, where libc may be of any build.
  bool has_place(const Cell& cell) const;

  /// Reads all cells, and lists the files that are none, which count as missing from then on. Call it first: a damaged
  /// file is then reported before hours of work.
  ReadCells read();

  /// Returns false if the cell is there already. Replaces a damaged file. Throws std::system_error.
  bool store(const Cell& cell);

  /// Writes or replaces a file that is no cell. Its name does not end with .json. Throws std::system_error.
  void store_other(const std::string& name, const std::string& text) const;

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
