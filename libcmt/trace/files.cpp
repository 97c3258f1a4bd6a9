// Reads through one growing window, writes whole buffers, and waits for a collector that is about to finish its trace.

#include "libcmt/trace/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "libcmt/format/coding.h"

namespace cmt {
namespace {

constexpr std::size_t read_size = 256 * 1024, least_read_size = 4096;

[[noreturn]] void fail(const std::string& name) { throw std::system_error(errno, std::generic_category(), name); }

/// If the traced program has ended, waits until its collector has finished the trace. If the program still runs, lets
/// its collector know that there is a reader.
void await_recorder(int fd) {
  struct flock end = lock_of(F_RDLCK, recorder_is_awaited), reader = lock_of(F_RDLCK, reader_at_work);
  if (fcntl(fd, F_OFD_SETLKW, &end) != 0) return;  // a pipe, for example, has no locks
  end.l_type = F_UNLCK;
  fcntl(fd, F_OFD_SETLK, &end);
  fcntl(fd, F_OFD_SETLK, &reader);
}

}  // namespace

int open_input(const std::string& path) {
  const int fd = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path == "-" ? "standard input" : path);
  await_recorder(fd);
  return fd;
}

Input::Input(int fd, std::string name) : fd_(fd), name_(name == "-" ? "standard input" : std::move(name)) {
  struct stat status;
  if (fstat(fd_, &status) != 0) fail(name_);
  const off_t position = lseek(fd_, 0, SEEK_CUR);
  can_seek_ = S_ISREG(status.st_mode) && position == 0;
  if (can_seek_) size_ = static_cast<std::uint64_t>(status.st_size);
}

Input::Input(std::unique_ptr<Bytes> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(name == "-" ? "standard input" : std::move(name)) {}

Input::~Input() {
  if (fd_ >= 0) close(fd_);
}

bool Input::fill() {
  assert(begin_ <= end_ && end_ <= window_.size());
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
    window_offset_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  // A small file gets a small window, because a page that is touched for the first time costs more than its bytes.
  const std::uint64_t rest = can_seek_ ? size_ - std::min(size_, window_offset_ + end_) : read_size;
  const std::size_t room = std::clamp<std::uint64_t>(rest + 1, least_read_size, read_size);
  if (window_.size() < end_ + room) window_.resize(end_ + room);
  const std::size_t got = read_some(window_.data() + end_, window_.size() - end_);
  at_end_ = got == 0;
  end_ += got;
  return !at_end_;
}

std::size_t Input::read_some(char* to, std::size_t room) {
  if (bytes_) return bytes_->read(to, room);
  ssize_t got;
  do {
    got = read(fd_, to, room);
  } while (got < 0 && errno == EINTR);
  if (got < 0) fail(name_);
  return static_cast<std::size_t>(got);
}

std::string_view Input::peek(std::size_t count) {
  while (end_ - begin_ < count && fill()) {
  }
  return {window_.data() + begin_, end_ - begin_};
}

void Input::go_to(std::uint64_t offset) {
  assert(can_seek_);
  if (lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) fail(name_);
  window_offset_ = offset;
  begin_ = end_ = 0;
  at_end_ = false;
}

std::string Input::at(std::uint64_t offset, std::size_t count) const {
  assert(can_seek_);
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const ssize_t n = pread(fd_, bytes.data() + got, count - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(name_);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

std::string Input::place(std::uint64_t offset) const { return name_ + ": offset " + format::hex_text(offset); }

void Output::write(std::string_view bytes) {
  offset_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw std::system_error(errno, std::generic_category(), doing_);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

std::uint64_t Output::copy_from(int fd, const std::string& name, std::uint64_t bytes_max) {
  std::vector<char> part(256 * 1024);
  std::uint64_t left = bytes_max;
  while (left != 0) {
    const ssize_t got = ::read(fd, part.data(), std::min<std::uint64_t>(part.size(), left));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), name);
    write({part.data(), static_cast<std::size_t>(got)});
    left -= static_cast<std::uint64_t>(got);
  }
  return bytes_max - left;
}

std::string temporary_folder() {
  const char* const given = std::getenv("TMPDIR");
  if (given != nullptr && *given != '\0') return given;
  return ::access("/var/tmp", F_OK) == 0 ? "/var/tmp" : "/tmp";
}

int open_nameless_file(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {  // a file system that has no files without names
    std::string path = folder + "/cmt.XXXXXX";
    fd = ::mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(path.c_str());
  }
  return fd;
}

int open_temporary_file() {
  const std::string folder = temporary_folder();
  const int fd = open_nameless_file(folder);
  if (fd < 0) fail("a temporary file in " + folder);
  return fd;
}

}  // namespace cmt
