#pragma once

#include <string>
#include <string_view>

#include "libcmt/format/stack_streams.h"

namespace cmt::format {

/// The section of names (format-spec/cmt.md, "Names"): what is known of stacks at the end of a trace.

/// The content of the section: the names that the encoder's table has of the frames in the file, and the modules that
/// went since the last block. Empty if there is neither.
std::string put_names(StackEncoder& stacks);

/// Names the frames of a table, whether they are defined yet or not.
void take_names(std::string_view content, StackTable& table);

/// Takes the modules that went. All of them are defined.
void take_unloaded(std::string_view content, StackDefinitions& definitions);

}  // namespace cmt::format
