#include "toolkit/process/system.h"

#include <unistd.h>

#include "toolkit/process/figures.h"
#include "toolkit/process/proc_file.h"

namespace cmt::process {

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

DiskTraffic parse_io(std::string_view text) {
  return {find_figure(text, "read_bytes").value_or(0), find_figure(text, "write_bytes").value_or(0)};
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace cmt::process
