#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cmt::process {

/// The whole of a file that the kernel makes up as it is read, such as /proc/PID/smaps. Such files have no size, and
/// the process may be gone: then std::system_error.
std::string read_file(const std::string& path);

/// Writes a short command to a file such as /proc/PID/clear_refs. Throws std::system_error.
void write_file(const std::string& path, const std::string& text);

/// "/proc/12/smaps". `root` lets a fixture, or another machine's /proc, stand in for the own one.
std::string path_of(int pid, const std::string& name, const std::string& root = "/proc");

/// The folder of one process, held open: whoever gets the pid after it is not mistaken for it. Not copied, moved only.
class ProcessFolder {
 public:
  /// Throws std::system_error where there is no such process, or it may not be seen.
  explicit ProcessFolder(int pid, const std::string& root = "/proc");
  ~ProcessFolder();
  ProcessFolder(ProcessFolder&& other) noexcept;
  ProcessFolder& operator=(ProcessFolder&& other) noexcept;

  /// Opens a file in it for reading. Throws std::system_error, with ENOENT or ESRCH where the process is gone.
  int open(const char* name) const;

  /// The whole of a file in it, in `buffer`, which grows as needed. Throws as open().
  std::string_view read(const char* name, std::string& buffer) const;

  /// The same in pieces of at most 64 KiB, in `buffer`, for a file that may be long.
  void read(const char* name, std::string& buffer, const std::function<void(std::string_view)>& take) const;

 private:
  int fd_;
  std::string path_;
};

/// The whole of an open file from its beginning, in `buffer`, which grows as needed. Throws std::system_error.
std::string_view read_again(int fd, std::string& buffer);

}  // namespace cmt::process
