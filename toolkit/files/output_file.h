/// Output files. A regular file is never seen half written.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace cmt::files {

/// Gives a file the mode of the file that it will replace, and its owner and group if that is permitted. A mode of 0600
/// protects what the file contains, and its replacement contains the same.
void keep_mode(int fd, const struct stat& replaced);

/// To be called where `error` was caught: throws it again. The error of a failed write gets the output's name in place
/// of "writing", since writers know only the descriptor.
[[noreturn]] void throw_with_name(const std::system_error& error, const std::string& output);

/// An output. A regular file gets its name only when it is whole: until then its bytes are in another file of the same
/// folder. Devices, FIFOs and standard output are written at once.
/// A file that it replaces keeps its mode. Throws std::system_error.
class OutputFile {
 public:
  /// `path` "-" is standard output.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return fd_; }

  /// Gives the file its name. To be called once, last.
  void commit();

 private:
  std::string path_;
  bool is_replacing_ = false;  // the path is no device, FIFO or standard output
  std::string part_;           // the name until the file is whole; empty: it has no name yet, not even that one
  int fd_ = STDOUT_FILENO;
};

}  // namespace cmt::files
