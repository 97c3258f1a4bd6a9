/// Where the parts of the tracer are installed, and whether a program can be recorded with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cmt::launch {

/// The path of libcmttrace.so: in the build folder of this program, or where it was installed. Throws
/// std::runtime_error where it is in neither.
std::string tracer_path();

/// `preload`, a list for LD_PRELOAD that begins with tracer_path(), with the library of heaptrack's functions.
std::string with_pools_library(const std::string& preload);

/// The path of cmttrace-collector: in the build folder of this program, or where it was installed. Throws
/// std::runtime_error where it is in neither.
std::string collector_path();

/// The path of another one of our tools, such as "cmttrace": in the build folder of this program, or where it was
/// installed. Throws std::runtime_error where it is in neither.
std::string tool_path(const std::string& name);

/// The file that a command's first word names, as execvp finds it. Empty if there is no such file.
std::string find_in_path(const std::string& word);

/// Whether the program that a word names gets other rights than ours as it is executed, as set-user-ID ones do.
bool changes_rights(const std::string& word);

/// Why a program can be run but not recorded, or only in part, and what can be done, in a line. The result is empty
/// if it can be recorded, or `word` is no program. The program may be linked statically, or be for 32
/// bits or another processor. It may be built with a sanitizer, have an allocator inside, or run with another user's
/// rights.
std::string why_not_recordable(const std::string& word);

/// The same in few words for a list of programs, if nothing of the program can be recorded: "linked statically".
std::string_view obstacle_of(const std::string& word);

/// The words for an obstacle that libcmttrace reports by a keyword (preload/program/launch/execs.h): "static" is
/// "linked statically". Empty: the keyword is not known.
std::string_view reason_of_obstacle(std::string_view keyword);

/// Whether a program would not start with the tracer loaded, because it is built with a sanitizer.
bool is_broken_by_tracer(const std::string& word);

/// The largest sampling interval in bytes that the tracer accepts (preload/settings_list.h).
inline constexpr std::uint64_t sampling_interval_max = std::uint64_t{1} << 30;

/// Environment variables for a command that is to be recorded to `output` (CMTTRACE_OUT); with `follow`, its children
/// too. Throws as collector_path() does.
std::vector<std::pair<std::string, std::string>> tracing_environment(const std::string& output, bool follow);

}  // namespace cmt::launch
