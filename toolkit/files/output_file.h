/// An output file that is never seen half written.
#pragma once

#include <unistd.h>

#include <string>

namespace cmt::files {

/// An output that gets its name only when it is whole. Until then its bytes are in another file of the same folder.
/// Throws std::system_error.
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
  std::string part_;          // the name until the file is whole; empty for a device, a FIFO and standard output
  bool is_nameless_ = false;  // the file has no name yet, not even that one
  int fd_ = STDOUT_FILENO;
};

}  // namespace cmt::files
