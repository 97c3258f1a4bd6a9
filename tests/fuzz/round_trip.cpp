// Any readable trace must stay the same through text and through .cmt, in blocks of any size.

#include "fuzz.h"

using namespace cmt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    // First through .cmt, which frees a block at the address where it was made, whatever the text has. Then through
    // text, whose reader mends contradictions.
    const std::string cmt = fuzz::rewritten(bytes, Format::cmt, 1 << 18);
    const std::string text = fuzz::rewritten(fuzz::rewritten(cmt, Format::text, 1), Format::text, 1);
    const fuzz::Lines first = fuzz::read(text);
    if (first.lines.size() > fuzz::events_max) return 0;
    fuzz::promise(first.defects == 0, "the canonical text has no defects");
    for (const std::uint32_t block_events : {std::uint32_t{1} + static_cast<std::uint32_t>(size % 64), 1u << 18}) {
      const std::string packed = fuzz::rewritten(text, Format::cmt, block_events);
      const fuzz::Lines again = fuzz::read(packed);
      fuzz::promise(again.lines == first.lines && again.whole == first.whole, ".cmt says what the text says");
      fuzz::promise(fuzz::rewritten(packed, Format::text, 1) == text, "and becomes the same text");
    }
  } catch (const FormatError&) {
  }
  return 0;
}
