/// An output file that is never seen half written.
#pragma once

#include <unistd.h>

#include <string>

namespace cmt::files {

/// The output, which gets its name only when it is whole: a regular file is written beside it first. Throws
/// std::system_error.
class OutputFile {
 public:
  /// `path` "-" is standard output.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return fd_; }

  /// Gives it its name.
  void commit();

 private:
  std::string path_;
  std::string part_;          // its name until it is whole; empty where it needs none
  bool is_nameless_ = false;  // and it has not even that yet
  int fd_ = STDOUT_FILENO;
};

}  // namespace cmt::files
