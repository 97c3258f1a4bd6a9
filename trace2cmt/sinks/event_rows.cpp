// Makes the row of an event, with the lifetime of the block that it ends.

#include "trace2cmt/sinks/event_rows.h"

#include <cassert>
#include <limits>

namespace cmt::trace2cmt {
namespace {

using Number = std::optional<std::uint64_t>;

Number where(bool present, std::uint64_t value) { return present ? Number(value) : std::nullopt; }

Number time_of(std::uint64_t time_ns) {
  return where(time_ns <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}, time_ns);
}

/// The bytes requested in all; null if the product has more than 64 bits. For pages, the offset of the first.
Number size_of(const cmt::Event& event) {
  if (cmt::is_about_pages(event.kind)) return event.size;
  std::uint64_t product;
  if (__builtin_mul_overflow(event.size, event.count, &product)) return std::nullopt;
  return where(cmt::traits(event.kind).sizes, product);
}

}  // namespace

EventRow EventRows::next(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  ++event_;
  const cmt::KindTraits& kind = cmt::traits(event.kind);
  const bool ends = old != nullptr && event.ends_block();
  assert(!ends || births_.find(event.old_tag) != nullptr);
  const Birth birth = ends ? *births_.erase(event.old_tag) : Birth();
  if (event.tag != 0) births_.insert({event.tag, event_, event.time_ns});
  const bool timed = ends && time_of(birth.time_ns) && time_of(event.time_ns) && event.time_ns >= birth.time_ns;
  EventRow row;
  row.numbers = {event_,
                 static_cast<std::uint64_t>(event.kind),
                 event.thread,
                 time_of(event.time_ns),
                 size_of(event),
                 where(kind.counts, event.count),
                 where(kind.aligns || (kind.may_align && event.alignment != 0), event.alignment),
                 where(event.tag != 0, event.tag),
                 where(event.tag != 0 && event.address != 0, event.address),
                 where(event.tag != 0 && event.usable != cmt::unknown, event.usable),
                 where(event.old_tag != 0, event.old_tag),
                 where(event.old_tag != 0 && event.old_address != 0, event.old_address),
                 where(old != nullptr, old != nullptr ? old->size : 0),
                 where(ends, event_ - birth.event),
                 where(timed, event.time_ns - birth.time_ns)};
  if (kind.labels || cmt::is_of_pool(event.kind)) row.label = event.label;
  if (cmt::is_of_pool(event.kind)) row.pool_block = event.pool_block;
  return row;
}

}  // namespace cmt::trace2cmt
