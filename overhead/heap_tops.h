/// The part of overhead's summary about blocks at the top of heaps: who made them, and the text.
#pragma once

#include <string>

#include "analysis/places/heap_tops.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// Fills in the events that made the blocks, and the functions that called. Does nothing if the trace was read from a
/// pipe, since it reads the trace once more.
void complete_heap_tops(analysis::HeapTops& tops, const trace::Options& options);

/// A table of the heaps with their highest blocks, or one line that reports why there is none.
std::string heap_tops_text(const analysis::HeapTops& tops);

}  // namespace cmt::overhead
