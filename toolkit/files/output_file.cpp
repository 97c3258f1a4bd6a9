// An output gets its name only when it is whole.
//
// Until then it is a file without a name in its folder (O_TMPFILE). So nothing remains in the folder if the program
// ends early, even by SIGKILL. On a file system without such files, the output is NAME.part until it is whole. It
// may remain, but nobody takes NAME.part for the whole output.

#include "toolkit/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "toolkit/command/output_path.h"

namespace cmt::files {
namespace {

[[noreturn]] void fail_with(const std::string& name) { throw std::system_error(errno, std::generic_category(), name); }

/// A file without a name in the folder of `path`, or -1.
int open_nameless(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

bool name_it(int fd, const std::string& name) {
  const std::string itself = "/proc/self/fd/" + std::to_string(fd);
  unlink(name.c_str());
  return linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path == "-" ? path : command::follow_links(path)) {
  if (path_ == "-") return;
  struct stat status;
  const bool is_special = stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (!is_special) {
    part_ = path_ + ".part";
    fd_ = open_nameless(path_);
    is_nameless_ = fd_ >= 0;
    if (is_nameless_) return;
  }
  const std::string& opened = is_special ? path_ : part_;
  fd_ = open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_with(path_);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
  if (!part_.empty() && !is_nameless_) unlink(part_.c_str());
}

void OutputFile::commit() {
  assert(fd_ >= 0);
  if (is_nameless_ && !name_it(fd_, part_)) fail_with(path_);
  is_nameless_ = false;
  if (path_ != "-" && close(std::exchange(fd_, -1)) != 0) fail_with(path_);
  if (part_.empty()) return;
  if (rename(part_.c_str(), path_.c_str()) != 0) fail_with(path_);
  part_.clear();
}

}  // namespace cmt::files
