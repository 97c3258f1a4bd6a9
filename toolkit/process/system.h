/// The machine: /proc/meminfo, /proc/diskstats, its page size and clocks.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::process {

/// /proc/meminfo in bytes. A figure that this kernel does not have is nothing.
struct SystemMemory {
  using Bytes = std::optional<std::uint64_t>;
  Bytes total, free, available, cached, buffers, anonymous, shared, slab, swap_total, swap_free, swap_cached;
};

SystemMemory parse_meminfo(std::string_view text);
SystemMemory read_meminfo(const std::string& root = "/proc");

/// The bytes that can be allocated without swapping. This is the lesser of the bytes that the kernel calls available,
/// and the rest of the control group's limit. Returns 0 if the kernel reports none.
std::uint64_t available_memory_bytes();

/// The traffic of a block device since the machine's start, from /proc/diskstats. A disk and its partitions have a line
/// each; the figures of a disk include those of its partitions.
struct Disk {
  std::string name;  ///< "sda", "nvme0n1p2"
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t busy_ms = 0;  ///< with at least one request under way

  bool operator==(const Disk&) const = default;
};

/// The devices in the text of a diskstats file. Other lines are left out.
std::vector<Disk> parse_diskstats(std::string_view text);

/// Throws std::system_error.
std::vector<Disk> read_diskstats(const std::string& root = "/proc");

/// The size of this machine's pages.
std::uint64_t page_bytes();

/// Nanoseconds of a clock, and of the monotonic one.
std::int64_t clock_ns(clockid_t clock);
std::int64_t now_ns();

}  // namespace cmt::process
