#include "cmtreplay/plan/trace_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "libcmt/trace/files.h"

namespace cmt::replay {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

TraceSource::TraceSource(const std::string& path) : name_(path), fd_(open_input(path)) {
  struct stat status {};
  if (fstat(fd_.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail(name_);
  }
  begin_ = lseek(fd_.get(), 0, SEEK_CUR);
  if (begin_ >= 0) return;
  std::string temporary = (std::filesystem::temp_directory_path() / "cmtreplay-XXXXXX").string();
  Fd file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) fail(temporary);
  unlink(temporary.c_str());
  Output(file.get()).copy_from(fd_.get(), name_);
  fd_ = std::move(file);
  begin_ = 0;
}

int TraceSource::open() {
  if (lseek(fd_.get(), begin_, SEEK_SET) < 0) fail(name_);
  const int fd = fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) fail(name_);
  return fd;
}

}  // namespace cmt::replay
