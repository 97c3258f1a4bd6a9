/// Annotates a trace with the places of its blocks: the tool's default command.
#pragma once

#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {

/// Annotates each event that makes or ends a block with the block's neighbours, gaps and pages. Each of these is one
/// line, broken here:
///
///     malloc(20) = 81d2899a0<8>
///       # prev 81d289980, gap 0, next 81d28ba20, gap 8300, pages [8508041, 8508041], 0 more pages
///
///     free(81d2899a0<8>)
///       # 20 bytes, allocated 2 lines ago, prev A, gap N, next A, gap N, pages [8508041-8508041], 0 fewer pages
///
/// The forms are those of the original's overhead.py, byte for byte. The brackets have a comma after "malloc" and a
/// minus after "free", and a blank follows "more pages". The original annotated a realloc only with the pages that it
/// frees. Here a realloc has the form of a free, "; " and the form of a malloc.
///
/// Without a neighbour the address is 0 and the gap -1. Gaps are by the size asked for. A page counts as gained or lost
/// unless the nearest block on either side is on it too. A block of size 0 is on one page. A block that was made before
/// the trace began is an `unknown block`. Addresses identify blocks. Memory: some 40 bytes a live block, and at most
/// 200 if blocks are far apart.
///
/// A page has `1 << page_shift` bytes. With `huge_pages`, pages of 2 MiB are counted too. Throws FormatError for a
/// block without an address.
void annotate_trace(const trace::Options& options, int page_shift, bool huge_pages);

}  // namespace cmt::overhead
