#include "toolkit/annotate/annotated_text.h"

#include <algorithm>

#include "toolkit/output/numbers.h"

namespace cmt::annotate {
AnnotatedText::AnnotatedText(int fd)
    : out_(fd), buffer_(std::make_unique_for_overwrite<char[]>(capacity)), at_(buffer_.get()) {}

void AnnotatedText::flush() {
  const std::string_view collected(buffer_.get(), static_cast<std::size_t>(at_ - buffer_.get()));
  at_ = buffer_.get();
  out_.write(collected);
}

std::string block_text(const heap::PlacedBlock& block) {
  return output::hex(block.address) + "<" + std::to_string(block.tag) + ">";
}

void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock) {
  std::sort(blocks.begin(), blocks.end(),
            [](const heap::PlacedBlock& a, const heap::PlacedBlock& b) { return a.tag < b.tag; });
  for (const heap::PlacedBlock& block : blocks) {
    out.begin_line("# leak: ");
    if (block.address != 0) out.hex(block.address);
    out.text("<");
    out.decimal(block.tag);
    out.text(">, ");
    out.block_age(block.size, block.born, clock);
    out.text(" before the end");
    out.end_line();
  }
}

}  // namespace cmt::annotate
