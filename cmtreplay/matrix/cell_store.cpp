// Stores cells as files. A cell is first written to a file with a name that no other process takes. Then link(2) gives
// the file its name, and fails if that name is taken. So the first process wins, on a shared file system too.
#include "cmtreplay/matrix/cell_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

/// A key that is the same for all cells that count as one for a cluster (has_place()).
std::string place_key(Cell cell) {
  if (parse_allocator_name(cell.allocator.name).name == "libc") cell.allocator.sha256.clear();
  return cell_key(cell);
}

/// A name that no other process takes: it contains the machine's name and the process id.
std::string part_name(const std::string& path) {
  char node[256] = "";
  gethostname(node, sizeof node - 1);
  return path + "." + file_name_of(node) + "." + std::to_string(getpid()) + ".part";
}

void write_whole(const std::string& path, const std::string& text) {
  const process::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_at(path);
  process::write_all(file.get(), text, path);
  if (fsync(file.get()) != 0 && errno != EINVAL) fail_at(path);
}

/// Returns false if there is such a file already.
bool name_if_free(const std::string& part, const std::string& path) {
  if (link(part.c_str(), path.c_str()) == 0) return unlink(part.c_str()), true;
  if (errno == EEXIST) return unlink(part.c_str()), false;
  // The file system has no hard links.
  if (renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return true;
  const int error = errno;
  unlink(part.c_str());
  errno = error;
  if (errno == EEXIST) return false;
  fail_at(path);
}

}  // namespace

CellStore::CellStore(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw std::system_error(error, folder_);
}

bool CellStore::has(const Cell& cell) const {
  if (keys_.count(cell_key(cell)) != 0) return true;
  const std::string path = path_of(cell);
  return damaged_.count(path) == 0 && access(path.c_str(), F_OK) == 0;  // another process has stored it since read()
}

bool CellStore::has_place(const Cell& cell) const { return has(cell) || places_.count(place_key(cell)) != 0; }

ReadCells CellStore::read() {
  ReadCells all = read_cells(folder_);
  for (const Cell& cell : all.cells) {
    keys_.insert(cell_key(cell));
    places_.insert(place_key(cell));
  }
  damaged_.clear();
  for (const DamagedFile& file : all.damaged) damaged_.insert(file.path);
  return all;
}

bool CellStore::store(const Cell& cell) {
  const std::string path = path_of(cell), part = part_name(path);
  write_whole(part, output::json_text(cell));
  keys_.insert(cell_key(cell));
  if (damaged_.erase(path) == 0) return name_if_free(part, path);
  if (rename(part.c_str(), path.c_str()) != 0) fail_at(path);
  return true;
}

void CellStore::store_other(const std::string& name, const std::string& text) const {
  const std::string path = folder_ + "/" + name, part = part_name(path);
  write_whole(part, text);
  if (rename(part.c_str(), path.c_str()) != 0) fail_at(path);
}

}  // namespace cmt::replay
