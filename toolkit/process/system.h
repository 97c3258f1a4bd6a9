#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cmt::process {

/// What /proc/meminfo says of the machine, in bytes. What a kernel does not say is nothing.
struct SystemMemory {
  using Bytes = std::optional<std::uint64_t>;
  Bytes total, free, available, cached, buffers, anonymous, shared, slab, swap_total, swap_free, swap_cached;
};

SystemMemory parse_meminfo(std::string_view text);
SystemMemory read_meminfo(const std::string& root = "/proc");

/// What /proc/PID/io says: bytes that a process has had read from disks, and written to them.
struct DiskTraffic {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};

DiskTraffic parse_io(std::string_view text);

/// The size of this machine's pages.
std::uint64_t page_bytes();

}  // namespace cmt::process
