/// Opens files by paths that an input names: modules of a trace, debug files, files of another user's process.
#pragma once

#include <string>

#include "toolkit/process/proc_file.h"

namespace cmt::files {

/// How a path is resolved.
struct PathRules {
  std::string root{};         ///< a folder that is "/" for the path and for its links; empty: ours
  bool follows_links = true;  ///< a path whose last part is a symbolic link is opened
};

/// Opens a regular file for reading. With /proc nothing else is ever opened: opening a FIFO releases its writer, and
/// opening a device can do anything. Throws FormatError for a path that is no regular file, and std::system_error.
process::Fd open_regular_file(const std::string& path, const PathRules& rules = {});

}  // namespace cmt::files
