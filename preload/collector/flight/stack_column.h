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
///     column = is_mixed value*
///
///     value  = zigzag of the difference from the value before; in a mixed column, shifted above the stack_class()
///
/// A column that is not mixed has a value for each event that allocates. A mixed one also has values for the events of
/// each other class in which some event has a stack. If no event has a stack, the column is empty.
std::string put_stack_column(std::span<const EventStack> stacks);

/// The class of a kind: allocates, only releases, pool_malloc, pool_free, or a number that no value has.
std::size_t stack_class(Kind kind);

/// The values of a column. Each has the kind malloc, free, pool_malloc or pool_free, by its class.
std::vector<EventStack> take_stack_column(std::string_view bytes);

}  // namespace cmt::collector
