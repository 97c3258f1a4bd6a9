#include "preload/collector/flight/flight_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "libcmt/trace/files.h"

namespace cmt::collector {
namespace {

constexpr int numbers_max = 100000;

/// Creates the first file of that name that is not there, and gives its path.
int create_numbered(const std::string& trace, std::string& path) {
  const std::string ending = std::filesystem::path(trace).extension();
  const std::string begin = trace.substr(0, trace.size() - ending.size()) + ".kept.";
  int fd = -1;
  for (int number = 1; number <= numbers_max; ++number) {
    path = begin + std::to_string(number) + ending;
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  return fd;
}

/// Makes readers wait until the file is closed.
void lock_against_readers(int fd) {
  struct flock both {};
  both.l_type = F_WRLCK;
  both.l_whence = SEEK_SET;
  both.l_start = recorder_at_work;
  both.l_len = recorder_is_awaited + 1 - recorder_at_work;
  ::fcntl(fd, F_OFD_SETLK, &both);
}

}  // namespace

WrittenFlight write_beside(const std::string& trace, FlightSink& kept, const Repairs& repairs) {
  WrittenFlight written;
  const int fd = create_numbered(trace, written.path);
  lock_against_readers(fd);
  try {
    Output output(fd);
    written.span = kept.write(output, repairs, false);
  } catch (...) {
    ::unlink(written.path.c_str());
    ::close(fd);
    throw;
  }
  ::close(fd);
  return written;
}

}  // namespace cmt::collector
