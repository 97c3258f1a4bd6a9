/// Checks of the path of an output before the work begins, so that no long run fails when it writes its result.
#pragma once

#include <string>
#include <vector>

namespace cmt::command {

/// The path of the file that is written to by this name: its symbolic links are followed, also to a file that is not
/// there yet, as open(2) follows them. Throws std::system_error.
std::string follow_links(const std::string& path);

/// Throws UsageError where the output is the same file as an input, which it would replace. "-" as an input is standard
/// input; as the output it is let pass. So are files that are not regular.
void refuse_input_as_output(const std::string& output, const std::vector<std::string>& inputs);

/// A trace is written from its begin, when it is whole, which a device or a FIFO is not for. Throws std::runtime_error
/// that names the path.
void check_regular(const std::string& path);

/// Makes sure that a new file can be created in the place of a regular one, or of none. Afterwards there is none.
/// Throws std::system_error that names the path.
void make_room(const std::string& path);

/// Makes sure that files can be created in the folder of a path, unless that has a %. Throws std::system_error that
/// names the path.
void check_folder(const std::string& path);

}  // namespace cmt::command
