// An output gets its name only when it is whole.
//
// Until then it is a file without a name in its folder (O_TMPFILE). So nothing remains in the folder if the program
// is killed before the output is whole. On a file system without such files, the output is NAME.part until it is whole,
// or NAME.part2 and so on if the folder has such a file. It may remain, but nobody takes NAME.part for the whole
// output.

#include "toolkit/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "toolkit/command/output_path.h"

namespace cmt::files {
namespace {

constexpr int names_max = 1000;

[[noreturn]] void fail_with(const std::string& name) { throw std::system_error(errno, std::generic_category(), name); }

std::string path_of_fd(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// A file without a name in the folder of `path`, or -1.
int open_nameless(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd < 0 || access(path_of_fd(fd).c_str(), F_OK) == 0) return fd;
  close(fd);  // without /proc it cannot be named
  return -1;
}

/// Calls `make` with names until one was free, and returns that name. `make` returns false, with errno, if it failed.
template <class Make>
std::string make_with_free_name(const std::string& path, const Make& make) {
  for (int number = 1;; ++number) {
    const std::string name = path + ".part" + (number == 1 ? "" : std::to_string(number));
    if (make(name)) return name;
    if (errno != EEXIST || number == names_max) fail_with(path);
  }
}

}  // namespace

void keep_mode(int fd, const struct stat& replaced) {
  struct stat own {};
  if (fstat(fd, &own) != 0) return;
  mode_t mode = replaced.st_mode & 0777;
  if (own.st_uid != replaced.st_uid) static_cast<void>(!fchown(fd, replaced.st_uid, static_cast<gid_t>(-1)));
  if (own.st_gid != replaced.st_gid && fchown(fd, static_cast<uid_t>(-1), replaced.st_gid) != 0)
    mode = (mode & ~mode_t{070}) | (mode & 07) << 3;  // another group gets what all others have
  fchmod(fd, mode);
}

void throw_with_name(const std::system_error& error, const std::string& output) {
  if (std::string_view(error.what()).starts_with("writing: ")) throw std::system_error(error.code(), output);
  throw;
}

OutputFile::OutputFile(const std::string& path) : path_(path == "-" ? path : command::follow_links(path)) {
  if (path_ == "-") return;
  struct stat status;
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) fail_with(path_);
    return;
  }
  is_replacing_ = true;
  fd_ = open_nameless(path_);
  if (fd_ < 0) {
    part_ = make_with_free_name(path_, [&](const std::string& name) {
      fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
      return fd_ >= 0;
    });
  }
  if (exists) keep_mode(fd_, status);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) close(fd_);
  if (!part_.empty()) unlink(part_.c_str());
}

void OutputFile::commit() {
  assert(fd_ >= 0);
  if (is_replacing_ && part_.empty()) {
    part_ = make_with_free_name(path_, [&](const std::string& name) {
      return linkat(AT_FDCWD, path_of_fd(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  }
  if (path_ != "-" && close(std::exchange(fd_, -1)) != 0) fail_with(path_);
  if (!is_replacing_) return;
  if (rename(part_.c_str(), path_.c_str()) != 0) fail_with(path_);
  part_.clear();
}

}  // namespace cmt::files
