// The names of stacks (format-spec/cmt.md, "Names"): the functions, files and lines, in a section at the end of a
// trace. A block has the names of an interpreter's lines too, since no file has them when the end is missing.
#pragma once

#include <string>
#include <string_view>

#include "libcmt/format/stacks/stack_streams.h"

namespace cmt::format {

/// Returns the content of the section: the names of the frames in the file, and the modules that were unloaded since
/// the last block. Empty if there is neither.
std::string put_names(StackEncoder& stacks);

/// Names the frames of a table, whether or not they are defined yet.
void take_names(std::string_view content, StackTable& table);

/// Returns the stream of the names of the interpreters' frames that this block defines. Empty if there are none. To be
/// called before StackEncoder::finish_definitions().
std::string put_frame_names(const StackEncoder& stacks);

/// Names the frames of a table that have no names yet. Requires that all frames of the block are defined.
void take_frame_names(std::string_view stream, StackTable& table);

/// Takes the modules that were unloaded. Requires that all modules of the file are defined.
void take_unloaded(std::string_view content, StackDefinitions& definitions);

}  // namespace cmt::format
