#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cmt::process {

/// The number behind "KEY:" at the beginning of a line, as /proc/PID/status, /proc/PID/io and /proc/meminfo have them;
/// nothing where there is no such line.
std::optional<std::uint64_t> find_figure(std::string_view text, std::string_view key, int base = 10);

}  // namespace cmt::process
