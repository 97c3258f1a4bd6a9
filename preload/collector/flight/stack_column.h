#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/trace/file/cmt_sink.h"

namespace cmt::collector {

/// The stacks of a kept block's events, by the numbers of the recording's table: a file that gets the block later has
/// numbers of its own, of the stacks that it needs.
///
///     column = rule value*      rule 1: of events that allocate; 3: of those that only release too
///     value  = zigzag of the difference from the value before, and below it a bit of an event that only releases
///
/// Without stacks there is no column.
std::string put_stack_column(std::span<const EventStack> stacks);

/// One event for each value: of kind malloc or, where it only releases, free.
struct StackColumn {
  bool has_releases = false;  ///< events that only release have values
  std::vector<EventStack> values;
};
StackColumn take_stack_column(std::string_view bytes);

}  // namespace cmt::collector
