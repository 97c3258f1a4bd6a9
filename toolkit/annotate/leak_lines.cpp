#include "toolkit/annotate/leak_lines.h"

#include <algorithm>

namespace cmt::heap {

void append_leaks(AnnotatedText& out, std::vector<PlacedBlock> blocks, const Clock& clock) {
  std::sort(blocks.begin(), blocks.end(), [](const PlacedBlock& a, const PlacedBlock& b) { return a.tag < b.tag; });
  for (const PlacedBlock& block : blocks) {
    out.open("# leak: ");
    if (block.address != 0) out.hex(block.address);
    out.text("<");
    out.decimal(block.tag);
    out.text(">, ");
    out.decimal(block.size);
    out.text(" bytes, allocated ");
    out.decimal(clock.now() - block.born);
    out.text(" ");
    out.text(clock.unit_text());
    out.text(" before the end");
    out.close();
  }
}

}  // namespace cmt::heap
