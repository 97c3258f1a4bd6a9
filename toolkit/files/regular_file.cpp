// A trace may come from anybody, and names files that a tool opens:
//
//     #module 1 begin=1000 end=9000 bias=1000 path="/tmp/a_fifo"
//
// open(2) would release the writer that waits at the FIFO, whose data would be lost. O_NONBLOCK does not help, and
// fstat(2) comes too late. So the path is resolved with O_PATH, which opens nothing, and the file is opened by
// /proc/self/fd once it is known to be regular. Nobody can replace the file in between, because its path is not
// resolved again. Without /proc the path is resolved again. A file that was replaced may then be opened, and is
// refused.

#include "toolkit/files/regular_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cmt/error.h"

namespace cmt::files {
namespace {

using process::Fd;

[[noreturn]] void fail_to_open(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

Fd open_by_rules(const std::string& path, const PathRules& rules, int flags) {
  flags |= O_CLOEXEC | (rules.follows_links ? 0 : O_NOFOLLOW);
  if (rules.root.empty()) return Fd(open(path.c_str(), flags));
  const Fd folder(open(rules.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) fail_to_open(rules.root);
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = RESOLVE_IN_ROOT;
  return Fd(static_cast<int>(syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
}

struct stat status_of(const Fd& file, const std::string& path) {
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) fail_to_open(path);
  if (S_ISLNK(status.st_mode)) errno = ELOOP;
  if (S_ISLNK(status.st_mode)) fail_to_open(path);
  if (!S_ISREG(status.st_mode)) throw FormatError(path, "is no regular file");
  return status;
}

}  // namespace

Fd open_regular_file(const std::string& path, const PathRules& rules) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const Fd place = open_by_rules(path, rules, O_PATH);
  const struct stat found = status_of(place, path);
  Fd file(open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), flags));
  if (file.get() >= 0) return file;
  if (errno != ENOENT && errno != ENOTDIR) fail_to_open(path);
  // Without /proc, the path is resolved again. It has to lead to the same file.
  file = open_by_rules(path, rules, flags);
  const struct stat opened = status_of(file, path);
  if (opened.st_dev == found.st_dev && opened.st_ino == found.st_ino) return file;
  throw FormatError(path, "was replaced while it was opened");
}

}  // namespace cmt::files
