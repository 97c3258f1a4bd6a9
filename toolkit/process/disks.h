#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::process {

/// What a block device has done since the machine's start, as /proc/diskstats tells it. A disk and its partitions are
/// lines of their own: a disk's figures hold those of its partitions.
struct Disk {
  std::string name;  ///< "sda", "nvme0n1p2"
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t busy_ms = 0;  ///< with at least one request under way
};

/// The devices in the text of a diskstats file. Lines that are none are left out.
std::vector<Disk> parse_diskstats(std::string_view text);

/// Throws std::system_error.
std::vector<Disk> read_diskstats(const std::string& root = "/proc");

}  // namespace cmt::process
