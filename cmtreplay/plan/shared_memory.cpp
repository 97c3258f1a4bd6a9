#include "cmtreplay/plan/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace cmt::replay {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

SharedMemory::SharedMemory(const std::string& name, std::uint64_t bytes, std::uint64_t bytes_max)
    : name_("cmtreplay-" + name), fd_(memfd_create(name_.c_str(), 0)), mapped_bytes_(std::max(bytes, bytes_max)) {
  if (fd_.get() < 0) fail(errno, name_);
  grow(0, bytes);
  if (mapped_bytes_ == 0) return;
  void* const map = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd(), 0);
  if (map == MAP_FAILED) fail(errno, "mapping shared memory");
  begin_ = static_cast<char*>(map);
}

SharedMemory::~SharedMemory() {
  if (begin_ != nullptr) munmap(begin_, mapped_bytes_);
}

// Pages that are not allocated now would end this process or the worker with SIGBUS where memory is short.
void SharedMemory::grow(std::uint64_t from_bytes, std::uint64_t to_bytes) {
  if (from_bytes == to_bytes) return;
  const int error = posix_fallocate(fd(), static_cast<off_t>(from_bytes), static_cast<off_t>(to_bytes - from_bytes));
  if (error != 0) fail(error, "shared memory for " + name_.substr(name_.find('-') + 1));
}

void SharedMemory::resize(std::uint64_t bytes) {
  if (ftruncate(fd(), static_cast<off_t>(bytes)) != 0) fail(errno, "shared memory for " + name_);
}

void SharedMemory::discard_pages(std::uint64_t bytes) {
  if (bytes != 0 && fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0)
    fail(errno, name_);
}

}  // namespace cmt::replay
