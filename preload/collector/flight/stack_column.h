// The call stacks of a kept block's events, packed by numbers that outlive the block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/trace/file/cmt_sink.h"

namespace cmt::collector {

/// Encodes the stacks of a kept block's events by the numbers of the recording's table. A file to which the block is
/// written later has numbers of its own, only for the stacks that it needs.
///
///     column = rule value*      rule 1: for events that allocate; 3: also for those that only release
///
///     value  = zigzag of the difference from the value before, and below it a bit of an event that only releases
///
/// If no event has a stack, the column is empty.
std::string put_stack_column(std::span<const EventStack> stacks);

/// A decoded column. Each value has the kind malloc or, for an event that only releases, free.
struct StackColumn {
  bool has_releases = false;  ///< events that only release have values
  std::vector<EventStack> values;
};
StackColumn take_stack_column(std::string_view bytes);

}  // namespace cmt::collector
