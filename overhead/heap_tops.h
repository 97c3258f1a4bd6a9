/// The parts of overhead's summary about blocks at the top of heaps and glibc's threshold for mappings: the callers,
/// and the text.
#pragma once

#include <string>

#include "analysis/places/summary.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// Fills in the events that made the blocks of heap_tops and mmap_threshold, and the functions that called. Does
/// nothing if the trace was read from a pipe, since it reads the trace once more.
void name_blocks(analysis::Summary& summary, const trace::Options& options);

/// A table of the heaps with their highest blocks, or one line that reports why there is none.
std::string heap_tops_text(const analysis::HeapTops& tops);

/// The first free that raised the threshold, and what came from the heaps since.
std::string threshold_text(const analysis::MmapThreshold& threshold);

}  // namespace cmt::overhead
