#pragma once

#include <string>

namespace cmt::process {

/// The whole of a file that the kernel makes up as it is read, such as /proc/PID/smaps. Such files have no size, and
/// the process may be gone: then std::system_error.
std::string read_file(const std::string& path);

/// Writes a short command to a file such as /proc/PID/clear_refs. Throws std::system_error.
void write_file(const std::string& path, const std::string& text);

/// "/proc/12/smaps". `root` lets a fixture, or another machine's /proc, stand in for the own one.
std::string path_of(int pid, const std::string& name, const std::string& root = "/proc");

}  // namespace cmt::process
