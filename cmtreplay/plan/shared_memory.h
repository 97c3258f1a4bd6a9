/// Memory that this process and the worker share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "toolkit/process/proc_file.h"

namespace boost::interprocess {
class mapped_region;
}

namespace cmt::replay {

using process::Fd;

/// Memory that the worker maps too. It is a memfd whose name begins with "cmtreplay-": by this name /proc/PID/smaps
/// distinguishes its mappings from the allocator's. Child processes inherit it. Throws std::system_error, also if
/// memory is short.
class SharedMemory {
 public:
  /// Makes memory of `bytes` zeros.
  explicit SharedMemory(const std::string& name, std::uint64_t bytes = 0);

  int fd() const { return fd_.get(); }

  /// Extends it by zeros, whose pages are allocated now.
  void grow(std::uint64_t from_bytes, std::uint64_t to_bytes);
  /// Sets its length. Pages are allocated when they are touched.
  void resize(std::uint64_t bytes);
  /// Gives pages back to the kernel. The length stays.
  void discard_pages(std::uint64_t from_bytes, std::uint64_t bytes);

 private:
  std::string name_;
  Fd fd_;
};

/// A mapping of shared memory in this process.
class MappedMemory {
 public:
  /// The mapping may reach beyond the memory's end. The caller must not
  /// touch that part before the memory has grown.
  MappedMemory(const SharedMemory& memory, std::uint64_t bytes);
  ~MappedMemory();

  char* begin() const { return begin_; }
  const std::uint64_t* words() const { return reinterpret_cast<const std::uint64_t*>(begin_); }

 private:
  std::unique_ptr<boost::interprocess::mapped_region> region_;  ///< null: of no bytes
  char* begin_ = nullptr;
};

/// The names of all SharedMemory in /proc/PID/maps begin with this.
inline constexpr std::string_view shared_memory_prefix = "/memfd:cmtreplay-";

}  // namespace cmt::replay
