// Makes and maps memfds. grow() allocates the pages at once, so that a lack of memory is an error and no SIGBUS.
#include "cmtreplay/plan/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cassert>
#include <cerrno>
#include <system_error>

namespace cmt::replay {
namespace {

namespace ipc = boost::interprocess;

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// A memfd, for Boost.Interprocess to map.
struct MappableFd {
  int fd;
  ipc::mapping_handle_t get_mapping_handle() const { return ipc::ipcdetail::mapping_handle_from_file_handle(fd); }
};

}  // namespace

SharedMemory::SharedMemory(const std::string& name, std::uint64_t bytes)
    : name_("cmtreplay-" + name), fd_(memfd_create(name_.c_str(), 0)) {
  if (fd_.get() < 0) fail(errno, name_);
  grow(0, bytes);
}

// If memory is short, a page that is not allocated now would end this process or the worker with SIGBUS.
void SharedMemory::grow(std::uint64_t from_bytes, std::uint64_t to_bytes) {
  assert(from_bytes <= to_bytes);
  if (from_bytes == to_bytes) return;
  const int error = posix_fallocate(fd(), static_cast<off_t>(from_bytes), static_cast<off_t>(to_bytes - from_bytes));
  if (error != 0) fail(error, "shared memory for " + name_.substr(name_.find('-') + 1));
}

void SharedMemory::resize(std::uint64_t bytes) {
  if (ftruncate(fd(), static_cast<off_t>(bytes)) != 0) fail(errno, "shared memory for " + name_);
}

void SharedMemory::discard_pages(std::uint64_t from_bytes, std::uint64_t bytes) {
  constexpr int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (fallocate(fd(), how, static_cast<off_t>(from_bytes), static_cast<off_t>(bytes)) != 0) fail(errno, name_);
}

MappedMemory::MappedMemory(const SharedMemory& memory, std::uint64_t bytes) try {
  if (bytes == 0) return;
  region_ =
      std::make_unique<ipc::mapped_region>(MappableFd{memory.fd()}, ipc::read_write, 0, bytes, nullptr, MAP_NORESERVE);
  begin_ = static_cast<char*>(region_->get_address());
} catch (const ipc::interprocess_exception& error) {
  fail(error.get_native_error(), "mapping shared memory");
}

MappedMemory::~MappedMemory() = default;

}  // namespace cmt::replay
