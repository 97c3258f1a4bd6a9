/// Names of functions that a JIT compiler made, from the list that it wrote: no file of a program contains them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cmt::symbols {

/// Returns the name of a function of a perf map without V8's tier. Other names stay as they are.
std::string without_tier(std::string_view function);

/// Functions of a JIT compiler, as node (--perf-basic-prof), Java's agents and others list them in /tmp/perf-PID.map:
///
///     7f2a3c001000 4c LazyCompile:~parse app.js:12
///
/// V8 compiles a function again and again, each time better: the names of these tiers become one, without the tier.
///
///     LazyCompile:~parse app.js:12       parse app.js:12
///     JS:*parse file:///app.js:12:3      parse file:///app.js:12:3
///     JS:^ file:///app.js:14:1           <anonymous> file:///app.js:14:1
///
/// Reads the list and calls `found` with the index of each address that a function has. `addresses` rise. If memory was
/// used for several functions, the last one is taken, since the list has no times. A missing file is an empty list.
/// Throws std::system_error, and FormatError if the file is not regular, or belongs to a user other than this one and
/// root.
void look_up_in_perf_map(const std::string& path, std::span<const std::uint64_t> addresses,
                         const std::function<void(std::size_t index, std::string_view function)>& found);

}  // namespace cmt::symbols
