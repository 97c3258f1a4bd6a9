#include "process/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cmt::process {
namespace {

/// A descriptor that is closed when it goes out of sight.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)), path_(path) {
    if (fd_ < 0) fail();
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }

  [[noreturn]] void fail() const { throw std::system_error(errno, std::generic_category(), path_); }

 private:
  int fd_;
  std::string path_;
};

}  // namespace

std::string read_file(const std::string& path) {
  const OpenFile file(path, O_RDONLY);
  std::string text;
  std::size_t used = 0;
  for (;;) {
    text.resize(used + 64 * 1024);
    const ssize_t got = read(file.fd(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file.fail();
    used += static_cast<std::size_t>(got);
    if (got == 0) break;
  }
  text.resize(used);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  const OpenFile file(path, O_WRONLY);
  ssize_t put;
  do put = write(file.fd(), text.data(), text.size());
  while (put < 0 && errno == EINTR);
  if (put < 0) file.fail();
}

std::string path_of(int pid, const std::string& name, const std::string& root) {
  return root + "/" + std::to_string(pid) + "/" + name;
}

}  // namespace cmt::process
