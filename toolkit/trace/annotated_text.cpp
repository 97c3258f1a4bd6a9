// Writes lines of a trace and their annotations into a buffer that grows.

#include "toolkit/trace/annotated_text.h"

#include <algorithm>
#include <string>

#include "cmt/text.h"
#include "libcmt/text/format.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::trace {

void AnnotatedText::begin_checked(const Event& event, std::string_view line) {
  if (!line.empty() && cmt::text::is_plain(line)) return begin_line(line);
  if (traits(event.kind).labels) return begin_line(to_line(event));
  make_room(cmt::text::line_room);
  at_ = cmt::text::put_line(at_, event);
}

void AnnotatedText::block_age(std::uint64_t size, std::uint64_t age, heap::Clock::Unit clock) {
  decimal(size);
  text(" bytes, allocated ");
  if (clock == heap::Clock::Unit::time) return text(output::time_text(static_cast<double>(age)));
  decimal(age);
  text(clock == heap::Clock::Unit::events ? " lines" : " bytes");
}

void AnnotatedText::grow(std::size_t wanted) {
  const std::string_view before = lines();
  const std::size_t capacity =
      std::max({before.size() + wanted, 2 * static_cast<std::size_t>(end_ - buffer_.get()), std::size_t{128} * 1024});
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  std::copy(before.begin(), before.end(), larger.get());
  at_ = larger.get() + before.size();
  end_ = larger.get() + capacity;
  buffer_ = std::move(larger);
}

void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock,
                  const std::function<void()>& write) {
  constexpr std::size_t many = 64 * 1024;  // bytes
  std::sort(blocks.begin(), blocks.end(),
            [](const heap::PlacedBlock& a, const heap::PlacedBlock& b) { return a.tag < b.tag; });
  for (const heap::PlacedBlock& block : blocks) {
    out.begin_line("# leak: ");
    if (block.address != 0) out.hex(block.address);
    out.text("<");
    out.decimal(block.tag);
    out.text(">, ");
    out.block_age(block.size, clock.now() - block.born, clock.unit());
    out.text(" before the end");
    out.end_line();
    if (out.lines().size() >= many) write();
  }
  write();
}

}  // namespace cmt::trace
