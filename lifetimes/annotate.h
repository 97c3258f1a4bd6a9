/// Annotates a trace with the lifetimes of its blocks: the tool's default command.
#pragma once

#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// Annotates each event that ends a block with the block's size and age.
///
///     malloc(8) = 81d220b48<6655>
///     realloc(81d220b48<6655>, 16) = 81d3b83a0<6656>    # 8 bytes, allocated 1 lines ago
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// The form is that of the original's lifetimes.py, byte for byte ("1 lines" included). By the clock of events, an age
/// counts the lines of a text without comments. A block that was made before the trace began is an `unknown block`.
/// Tags identify blocks, so a trace without addresses is enough. Memory: some 60 bytes a live block.
void annotate_trace(const trace::Options& options);

}  // namespace cmt::lifetimes
