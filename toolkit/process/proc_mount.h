/// Whether /proc is there, and what every tool reports if it is not.
#pragma once

#include <filesystem>
#include <string>

namespace cmt::process {

inline constexpr const char* proc_is_missing = "/proc is not mounted; 'mount -t proc proc /proc' as root mounts it";

bool is_proc_mounted();

/// Throws std::runtime_error if `root` is /proc, and that is not mounted. Another root is another machine's, or a
/// test's.
void need_proc(const std::string& root = "/proc");

/// The file of this process's program. Throws std::runtime_error if /proc is not mounted, and std::system_error.
std::filesystem::path own_program();

}  // namespace cmt::process
