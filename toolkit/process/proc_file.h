/// Files that the kernel makes up as they are read, such as /proc/PID/smaps: they have no size, and the process may be
/// gone before the last byte.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cmt::process {

/// A file descriptor that is closed with its owner; -1: none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  void close() { *this = Fd(); }

 private:
  int fd_ = -1;
};

/// Reads a whole file. Throws std::system_error if it cannot be opened or read, as when its process has ended.
std::string read_file(const std::string& path);

/// Creates a file to write to, or empties it; none for an empty path. Throws std::system_error.
Fd create_file(const std::string& path);

/// Writes all of a text. Throws std::system_error, with `name`.
void write_all(int fd, std::string_view text, const std::string& name);

/// Writes a short command to a file such as /proc/PID/clear_refs. Throws std::system_error.
void write_file(const std::string& path, const std::string& text);

/// "/proc/12/smaps". `root` is another machine's /proc, or a test's.
std::string path_of(int pid, const std::string& name, const std::string& root = "/proc");

/// The whole of an open file from its beginning, in `buffer`, which grows as needed. Throws std::system_error.
std::string_view read_again(int fd, std::string& buffer);

/// The folder of one process, held open, so that another process that is given the same pid later is not mistaken for
/// it.
class ProcessFolder {
 public:
  /// Throws std::system_error if there is no such process, or it may not be seen.
  explicit ProcessFolder(int pid, const std::string& root = "/proc");

  /// Opens a file in it for reading. Throws std::system_error, with ENOENT or ESRCH if the process is gone.
  int open(const char* name) const;

  /// The whole of a file in it, in `buffer`, which grows as needed. Throws as open().
  std::string_view read(const char* name, std::string& buffer) const;

  /// The same in pieces of at most 64 KiB, for a file that may be long.
  void read(const char* name, std::string& buffer, const std::function<void(std::string_view)>& take) const;

 private:
  std::string path_;
  Fd fd_;
};

/// The names in a folder that are numbers, ascending. Empty if the folder cannot be listed.
std::vector<int> numbers_in(const std::string& folder);

/// The next word of a line, which it takes off with the blanks before it.
std::string_view take_word(std::string_view& line);

/// The number after "KEY:" at the beginning of a line, as in /proc/PID/status, /proc/PID/io and /proc/meminfo. Nothing
/// if there is no such line.
std::optional<std::uint64_t> find_figure(std::string_view text, std::string_view key, int base = 10);

}  // namespace cmt::process
