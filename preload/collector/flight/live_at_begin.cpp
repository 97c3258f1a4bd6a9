// Packs allocations, and folds events into those that are live at the begin of the kept events.

#include "preload/collector/flight/live_at_begin.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "libcmt/format/addresses.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/origins.h"
#include "preload/collector/flight/stack_column.h"

namespace cmt::collector {
namespace {

using format::put_varint;
using format::unzigzag;
using format::zigzag;

/// Encodes a value that may be unknown.
std::uint64_t optional_field(std::uint64_t value, std::uint64_t base) {
  return value == unknown ? 0 : zigzag(value - base) + 1;
}

std::uint64_t take_optional(format::Cursor& cursor, std::uint64_t base) {
  const std::uint64_t field = cursor.varint();
  return field == 0 ? unknown : base + unzigzag(field - 1);
}

bool has_lower_tag(const format::LiveBlock& block, Tag tag) { return block.tag < tag; }

}  // namespace

void PackedAllocations::append(const Event& made) {
  const KindTraits& kind = traits(made.kind);
  assert(made.tag > last_.tag);
  put_varint(bytes_, made.tag - last_.tag);
  bytes_ += static_cast<char>(made.kind);
  put_varint(bytes_, made.thread);
  put_varint(bytes_, made.size);
  if (kind.counts) put_varint(bytes_, made.count);
  if (kind.aligns || kind.may_align) put_varint(bytes_, made.alignment);
  put_varint(bytes_, zigzag(made.address - last_.address));
  put_varint(bytes_, optional_field(made.time_ns, last_time_ns_));
  put_varint(bytes_, optional_field(made.usable, made.bytes()));
  put_varint(bytes_, zigzag(std::uint64_t{made.stack} - last_.stack));
  last_ = made;
  if (made.time_ns != unknown) last_time_ns_ = made.time_ns;
  ++size_;
}

void PackedAllocations::for_each(const std::function<void(const Event&)>& visit) const {
  format::Cursor cursor(bytes_);
  Event made;
  for (std::uint64_t last_time_ns = 0; !cursor.at_end(); visit(made)) {
    made.tag += cursor.varint();
    made.kind = static_cast<Kind>(cursor.bytes(1)[0]);
    const KindTraits& kind = traits(made.kind);
    made.thread = static_cast<std::uint32_t>(cursor.varint());
    made.size = cursor.varint();
    made.count = kind.counts ? cursor.varint() : 1;
    made.alignment = kind.aligns || kind.may_align ? cursor.varint() : 0;
    made.address += unzigzag(cursor.varint());
    made.time_ns = take_optional(cursor, last_time_ns);
    made.usable = take_optional(cursor, made.bytes());
    made.stack = static_cast<StackId>(made.stack + unzigzag(cursor.varint()));
    if (made.time_ns != unknown) last_time_ns = made.time_ns;
  }
}

void LiveAtBegin::begin_fold(std::vector<format::LiveBlock> survivors) {
  survivors_ = std::move(survivors);
  next_survivor_ = 0;
  next_live_ = {};
  live_.for_each([this](const Event& made) { keep(made); });
}

/// Keeps an allocation if its block is a survivor.
void LiveAtBegin::keep(const Event& allocation) {
  while (next_survivor_ != survivors_.size() && survivors_[next_survivor_].tag < allocation.tag) ++next_survivor_;
  if (next_survivor_ == survivors_.size() || survivors_[next_survivor_].tag != allocation.tag) return;
  Event made = format::origin_of(allocation);
  made.address = survivors_[next_survivor_++].address;
  next_live_.append(made);
}

void LiveAtBegin::add(std::span<const Event> events, std::span<const EventStack>& stacks) {
  for (const Event& event : events) {
    const bool has_value = !stacks.empty() && stack_class(stacks.front().kind) == stack_class(event.kind);
    const StackId stack = has_value ? stacks.front().stack : 0;
    if (has_value) stacks = stacks.subspan(1);
    if (is_about_pages(event.kind)) {
      follow_pages(event);
    } else if (event.tag != 0) {
      Event made = event;
      made.stack = stack;
      keep(made);
    }
  }
}

void LiveAtBegin::follow_pages(const Event& pages) {
  const auto block = std::lower_bound(survivors_.begin(), survivors_.end(), pages.old_tag, has_lower_tag);
  if (block == survivors_.end() || block->tag != pages.old_tag) return;
  if (pages.kind == Kind::discard) return pages_.drop(pages, block->size);
  if (pages_.find(pages.old_tag) == nullptr) with_pages_.push_back(pages.old_tag);
  pages_.add(pages, heap::bytes_of(pages, block->address, block->size), block->size);
}

void LiveAtBegin::finish_fold() {
  live_ = std::exchange(next_live_, {});
  std::erase_if(with_pages_, [this](Tag tag) {
    const auto block = std::lower_bound(survivors_.begin(), survivors_.end(), tag, has_lower_tag);
    const bool is_live = block != survivors_.end() && block->tag == tag;
    if (!is_live) pages_.end_block(tag);
    return !is_live;
  });
  survivors_ = {};
}

void LiveAtBegin::for_each_event(const std::function<void(const Event&)>& emit) const {
  live_.for_each([&](const Event& made) {
    emit(made);
    pages_.for_each_event(made, emit);
  });
}

std::vector<format::LiveBlock> list_live(std::string_view table) { return format::by_tag(format::take_live(table)); }

}  // namespace cmt::collector
