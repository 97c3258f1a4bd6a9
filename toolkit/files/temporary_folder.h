/// Folders for temporary files.
#pragma once

#include <string>

namespace cmt::files {

/// Creates a folder whose name begins so, in $TMPDIR, or in /tmp if it is not set or cannot have one. Returns its path.
/// Throws std::runtime_error, which names the places and the last one's fault.
std::string make_temporary_folder(const std::string& begin);

}  // namespace cmt::files
