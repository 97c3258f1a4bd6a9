#include "toolkit/process/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "toolkit/process/fd.h"

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

ProcessFolder::ProcessFolder(int pid, const std::string& root) : path_(root + "/" + std::to_string(pid)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path_);
}

ProcessFolder::~ProcessFolder() {
  if (fd_ >= 0) close(fd_);
}

ProcessFolder::ProcessFolder(ProcessFolder&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

ProcessFolder& ProcessFolder::operator=(ProcessFolder&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

int ProcessFolder::open(const char* name) const {
  const int fd = openat(fd_, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path_ + "/" + name);
  return fd;
}

std::string_view ProcessFolder::read(const char* name, std::string& buffer) const {
  const Fd file(open(name));
  return read_again(file.get(), buffer);
}

void ProcessFolder::read(const char* name, std::string& buffer,
                         const std::function<void(std::string_view)>& take) const {
  constexpr std::size_t piece_bytes = 64 * 1024;
  const Fd file(open(name));
  if (buffer.size() < piece_bytes) buffer.resize(piece_bytes);
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), piece_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), path_ + "/" + name);
    if (got == 0) return;
    take(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
  }
}

std::string_view read_again(int fd, std::string& buffer) {
  std::size_t used = 0;
  for (;;) {
    if (buffer.size() - used < 4096) buffer.resize(buffer.size() + 16 * 1024);
    const ssize_t got = pread(fd, buffer.data() + used, buffer.size() - used, static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "reading /proc");
    if (got == 0) return std::string_view(buffer.data(), used);
    used += static_cast<std::size_t>(got);
  }
}

std::string path_of(int pid, const std::string& name, const std::string& root) {
  return root + "/" + std::to_string(pid) + "/" + name;
}

}  // namespace cmt::process
