#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {

using process::Fd;

/// Memory that the worker maps too: a memfd whose name begins with "cmtreplay-", so that its mappings can be told from
/// the allocator's in /proc/PID/smaps. Child processes inherit it. Throws std::system_error, also where memory is
/// short.
class SharedMemory {
 public:
  /// `bytes` zeros, mapped here. The mapping has room for `bytes_max`, which are only addresses until it has grown.
  explicit SharedMemory(const std::string& name, std::uint64_t bytes = 0, std::uint64_t bytes_max = 0);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_.get(); }
  char* begin() const { return begin_; }
  const std::uint64_t* words() const { return reinterpret_cast<const std::uint64_t*>(begin_); }

  /// Extends it by zeros that are there.
  void grow(std::uint64_t from_bytes, std::uint64_t to_bytes);
  /// Sets its length. Pages are taken as they are touched.
  void resize(std::uint64_t bytes);
  /// Gives the pages back; the length stays.
  void discard_pages(std::uint64_t bytes);

 private:
  std::string name_;
  Fd fd_;
  std::uint64_t mapped_bytes_;
  char* begin_ = nullptr;  ///< null: of no bytes
};

/// The names of all SharedMemory in /proc/PID/maps begin with this.
inline constexpr std::string_view shared_memory_prefix = "/memfd:cmtreplay-";

}  // namespace cmt::replay
