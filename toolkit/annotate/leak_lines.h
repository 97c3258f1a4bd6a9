#pragma once

#include <vector>

#include "libcmt/heap/clock.h"
#include "libcmt/heap/placed_block.h"
#include "toolkit/annotate/annotated_text.h"

namespace cmt::heap {

/// Appends a comment line for every block, the oldest first; a trace with such lines reads as one without:
///
///     # leak: 81d220b48<6655>, 8 bytes, allocated 5 lines before the end
void append_leaks(AnnotatedText& out, std::vector<PlacedBlock> blocks, const Clock& clock);

}  // namespace cmt::heap
