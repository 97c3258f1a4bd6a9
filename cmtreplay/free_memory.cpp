#include "cmtreplay/free_memory.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <string>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

/// The first number after `key` in a file; nothing where there is none ("max").
std::optional<std::uint64_t> number_in(const std::string& path, const std::string& key) {
  try {
    const std::string text = process::read_file(path);
    auto at = text.find(key);
    if (at == text.npos) return std::nullopt;
    at = text.find_first_not_of(" \t", at + key.size());
    std::uint64_t number = 0;
    if (at == text.npos || std::from_chars(text.data() + at, text.data() + text.size(), number).ec != std::errc())
      return std::nullopt;
    return number;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::uint64_t free_memory_bytes() {
  const std::uint64_t available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  const auto limit = number_in("/sys/fs/cgroup/memory.max", "");
  const auto used = number_in("/sys/fs/cgroup/memory.current", "");
  if (!limit || !used) return available;
  return std::min(available, *limit - std::min(*limit, *used));
}

}  // namespace cmt::replay
