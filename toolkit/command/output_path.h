/// Checks of the path of an output before the work begins, so that no long run fails when it writes its result.
#pragma once

#include <string>
#include <vector>

namespace cmt::command {

/// The path of the file to which a name leads. Follows symbolic links as open(2) does, also to a file that does not
/// exist yet. Throws std::system_error.
std::string follow_links(const std::string& path);

/// Throws UsageError if the output is the same file as an input, which it would replace. "-" as an input is standard
/// input. Accepts "-" as the output, and files that are not regular.
void refuse_input_as_output(const std::string& output, const std::vector<std::string>& inputs);

/// Throws std::runtime_error, which names the path, for a device or a FIFO: the writer of a trace goes back to its
/// begin when it is whole.
void check_regular(const std::string& path);

/// Makes sure that a new file can be created at a path. Removes a regular file there. Throws std::system_error, which
/// names the path, and std::runtime_error if a recorder is still writing the file, or it is a device or a FIFO.
void make_room(const std::string& path);

/// Makes sure that files can be created in the folder of a path, unless the folder contains a %. Throws
/// std::system_error, which names the path.
void check_folder(const std::string& path);

}  // namespace cmt::command
