#include "cmtreplay/plan/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cmt::replay {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

SharedMemory::SharedMemory(const std::string& name, std::uint64_t bytes)
    : name_("cmtreplay-" + name), fd_(memfd_create(name_.c_str(), 0)) {
  if (fd_.get() < 0) fail(errno, name_);
  // Memory that is merely promised would end the worker with SIGBUS at the first page that is not there.
  const int error = bytes == 0 ? 0 : posix_fallocate(fd(), 0, static_cast<off_t>(bytes));
  if (error != 0) fail(error, "shared memory for " + name);
}

void SharedMemory::promise(std::uint64_t bytes) {
  if (ftruncate(fd(), static_cast<off_t>(bytes)) != 0) fail(errno, "shared memory for " + name_);
}

std::span<const std::uint64_t> SharedMemory::read(std::uint64_t place, std::span<std::uint64_t> words) const {
  const ssize_t got = pread(fd(), words.data(), words.size_bytes(), static_cast<off_t>(place * sizeof(std::uint64_t)));
  if (got < 0) fail(errno, name_);
  return words.first(static_cast<std::size_t>(got) / sizeof(std::uint64_t));
}

void* map_shared(int fd, std::size_t bytes) {
  void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (begin == MAP_FAILED) fail(errno, "mapping shared memory");
  return begin;
}

void unmap_shared(void* begin, std::size_t bytes) { munmap(begin, bytes); }

}  // namespace cmt::replay
