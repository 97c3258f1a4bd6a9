/// Functions of JIT compilers, which no file of a program contains.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cmt::symbols {

/// Functions of a JIT compiler, as node (--perf-basic-prof), Java's agents and others list them in /tmp/perf-PID.map:
///
///     7f2a3c001000 4c LazyCompile:~parse app.js:12
///
/// Reads the list and calls `found` with the number of each of the addresses, which rise, that a function has. Where
/// memory was used for several functions, the list does not tell when; the last one is taken. No file is an empty list.
/// Throws std::system_error, and FormatError where it is no regular file, or another user's than this one or root.
void look_up_in_perf_map(const std::string& path, std::span<const std::uint64_t> addresses,
                         const std::function<void(std::size_t index, std::string_view function)>& found);

}  // namespace cmt::symbols
