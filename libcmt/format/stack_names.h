// The section of names (format-spec/cmt.md, "Names"): the functions, files and lines of stacks, at the end of a trace.
#pragma once

#include <string>
#include <string_view>

#include "libcmt/format/stack_streams.h"

namespace cmt::format {

/// The section of names (format-spec/cmt.md, "Names"): what is known of stacks at the end of a trace.

/// Returns the content of the section: the names of the frames in the file, and the modules that were unloaded since
/// the last block. Empty if there is neither.
std::string put_names(StackEncoder& stacks);

/// Names the frames of a table, whether or not they are defined yet.
void take_names(std::string_view content, StackTable& table);

/// Takes the modules that were unloaded. Requires that all modules of the file are defined.
void take_unloaded(std::string_view content, StackDefinitions& definitions);

}  // namespace cmt::format
