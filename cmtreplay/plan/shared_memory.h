#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {

using process::Fd;

/// Memory that the worker maps too: a memfd of a name that begins with "cmtreplay-", by which its mappings are known in
/// /proc. It is inherited by child processes. Throws std::system_error, also where memory is short.
class SharedMemory {
 public:
  /// `bytes` zeros.
  explicit SharedMemory(const std::string& name, std::uint64_t bytes = 0);

  int fd() const { return fd_.get(); }

  /// Makes it so long. Pages come into being as they are touched.
  void promise(std::uint64_t bytes);

  /// Up to `words` words from a place on; fewer at the end.
  std::span<const std::uint64_t> read(std::uint64_t place, std::span<std::uint64_t> words) const;

 private:
  std::string name_;
  Fd fd_;
};

/// The names of all SharedMemory in /proc/PID/maps begin so.
inline constexpr std::string_view shared_memory_prefix = "/memfd:cmtreplay-";

void* map_shared(int fd, std::size_t bytes);
void unmap_shared(void* begin, std::size_t bytes);

}  // namespace cmt::replay
