// Preparing costs time and memory once, and all runs of all allocators share them: the worker maps the same operations.
//
// To say at which event an allocator crashed, a word has to be led back to its event. Nearly every event is one
// operation, so it is enough to remember an anchor (word, event) where that rule was broken, and to count operations
// from the last anchor on: 2 ns an operation, paid for a crash alone.
#include "cmtreplay/prepared_trace.h"

#include <algorithm>

namespace cmt::replay {
namespace {

constexpr std::size_t buffered_words = 32 * 1024;
constexpr std::size_t mark_count = 100;

/// Words of the operation that begins with this one.
std::uint64_t length(std::uint64_t word) {
  const std::uint64_t wide = word >> 32 == SIZE_IN_NEXT_WORD ? 1 : 0;
  switch (static_cast<operation>(word & 15)) {
    case operation_reallocarray:
      return 3 + wide;
    case operation_calloc:
    case operation_realloc_from:
    case operation_aligned_alloc:
    case operation_posix_memalign:
    case operation_memalign:
      return 2 + wide;
    default:
      return 1 + wide;
  }
}

}  // namespace

PreparedTrace::PreparedTrace(Reader& reader, const std::function<void(const Reader&)>& progress) {
  buffer_.reserve(buffered_words + Step().storage.size());
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) take(event);
    progress(reader);
  }
  flush();
  facts_.end_live = planner_.live();
  facts_.defects = reader.defects();
  facts_.truncated = reader.truncated();
  marks_ = keeper_.choose(mark_count);
}

void PreparedTrace::take(const Event& event) {
  const Step step = planner_.plan(event);
  count(event, step);
  if (step.operations != 0 && !regular_) anchors_.push_back({.word = words_, .event = facts_.events});
  regular_ = step.operations == 1;
  words_ += step.size;
  pointers_ += step.keeps_pointer ? 1 : 0;
  buffer_.insert(buffer_.end(), step.words().begin(), step.words().end());
  if (buffer_.size() >= buffered_words) flush();
  keeper_.pass({.event = facts_.events, .word = words_, .live = planner_.live()});
}

void PreparedTrace::count(const Event& event, const Step& step) {
  ++facts_.events;
  ++facts_.by_kind[static_cast<std::size_t>(event.kind)];
  facts_.calls += step.operations != 0 ? 1 : 0;
  facts_.failed_calls += step.outcome == Outcome::failed ? 1 : 0;
  facts_.unknown_blocks += step.outcome == Outcome::unknown ? 1 : 0;
  facts_.other_events += step.outcome == Outcome::other ? 1 : 0;
  const Live& live = planner_.live();
  facts_.peak_live.blocks = std::max(facts_.peak_live.blocks, live.blocks);
  if (live.bytes <= facts_.peak_live.bytes) return;
  facts_.peak_live.bytes = live.bytes;
  facts_.peak_live_bytes_event = facts_.events;
}

void PreparedTrace::flush() {
  operations_.append(buffer_);
  buffer_.clear();
}

std::uint64_t PreparedTrace::event_at(std::uint64_t word) const {
  const auto after =
      std::upper_bound(anchors_.begin(), anchors_.end(), word, [](auto at, const Anchor& a) { return at < a.word; });
  if (after == anchors_.begin()) return 0;
  Anchor at = *std::prev(after);
  std::vector<std::uint64_t> storage(buffered_words);
  while (at.word < word) {
    const auto words = operations_.read(at.word, storage);
    if (words.empty()) break;
    for (std::uint64_t i = 0; i < words.size() && at.word < word; ++at.event) {
      at.word += length(words[i]);
      i += length(words[i]);
    }
  }
  return at.event;
}

}  // namespace cmt::replay
