// Reads figures of the machine and of its control group.

#include "toolkit/process/system.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <exception>
#include <utility>

#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

/// The number in a file of the control group. Returns nothing if there is no such file, or it says "max".
std::optional<std::uint64_t> cgroup_bytes(const std::string& name) {
  try {
    const std::string text = read_file("/sys/fs/cgroup/" + name);
    std::uint64_t bytes = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), bytes).ec != std::errc()) return std::nullopt;
    return bytes;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

constexpr std::uint64_t sector_bytes = 512;
constexpr std::size_t numbers_used = 10;

std::optional<Disk> parse_disk(std::string_view line) {
  take_word(line), take_word(line);
  Disk disk{.name = std::string(take_word(line))};
  std::array<std::uint64_t, numbers_used> numbers{};
  for (std::uint64_t& number : numbers) {
    const std::string_view word = take_word(line);
    if (std::from_chars(word.data(), word.data() + word.size(), number).ec != std::errc()) return std::nullopt;
  }
  disk.reads = numbers[0], disk.read_bytes = numbers[2] * sector_bytes;
  disk.writes = numbers[4], disk.written_bytes = numbers[6] * sector_bytes;
  disk.busy_ms = numbers[9];
  return disk;
}

}  // namespace

SystemMemory parse_meminfo(std::string_view text) {
  const auto bytes = [text](std::string_view key) -> std::optional<std::uint64_t> {
    const auto kilobytes = find_figure(text, key);
    if (!kilobytes) return std::nullopt;
    return *kilobytes * 1024;
  };
  return {.total = bytes("MemTotal"),
          .free = bytes("MemFree"),
          .available = bytes("MemAvailable"),
          .cached = bytes("Cached"),
          .buffers = bytes("Buffers"),
          .anonymous = bytes("AnonPages"),
          .shared = bytes("Shmem"),
          .slab = bytes("Slab"),
          .swap_total = bytes("SwapTotal"),
          .swap_free = bytes("SwapFree"),
          .swap_cached = bytes("SwapCached")};
}

SystemMemory read_meminfo(const std::string& root) { return parse_meminfo(read_file(root + "/meminfo")); }

std::uint64_t available_memory_bytes() {
  std::uint64_t available = 0;
  try {
    available = read_meminfo().available.value_or(0);
  } catch (const std::exception&) {
    return 0;
  }
  const auto limit = cgroup_bytes("memory.max"), used = cgroup_bytes("memory.current");
  return limit && used ? std::min(available, *limit - std::min(*limit, *used)) : available;
}

// A device in /proc/diskstats is a line of numbers around its name (iostats.rst of the kernel's documentation):
//
//   8 0 sda 11713 2905 986306 4117 7010 5117 380914 3018 0 4900 7135 ...
//
// major, minor, name; reads, merged, sectors, milliseconds; writes, merged, sectors, milliseconds; requests under way,
// milliseconds with any. Kernels add numbers at the end. A sector is 512 bytes here, whatever the device's own size.

std::vector<Disk> parse_diskstats(std::string_view text) {
  std::vector<Disk> disks;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (auto disk = parse_disk(line)) disks.push_back(std::move(*disk));
  }
  return disks;
}

std::vector<Disk> read_diskstats(const std::string& root) { return parse_diskstats(read_file(root + "/diskstats")); }

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  assert(std::has_single_bit(bytes));
  return bytes;
}

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace cmt::process
