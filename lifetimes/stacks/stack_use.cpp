#include "lifetimes/stacks/stack_use.h"

#include <algorithm>

namespace cmt::lifetimes {

Use& Use::operator+=(const Use& more) {
  allocated += more.allocated;
  peak += more.peak;
  leaked += more.leaked;
  temporary += more.temporary;
  return *this;
}

std::uint64_t Use::metric(Metric metric) const {
  switch (metric) {
    case Metric::bytes:
      return allocated.bytes;
    case Metric::blocks:
      return allocated.blocks;
    case Metric::peak:
      return peak.bytes;
    case Metric::live:
      return leaked.bytes;
    case Metric::temporary:
      return temporary;
  }
  return 0;
}

StackUseCounter::Counter& StackUseCounter::counter_of(StackId stack) {
  if (stack >= index_.size()) index_.resize(std::max<std::size_t>(stack + std::size_t{1}, index_.size() * 2));
  std::uint32_t& index = index_[stack];
  if (index == 0) {
    counters_.push_back({.stack = stack, .allocated = {}, .live = {}});
    index = static_cast<std::uint32_t>(counters_.size());
  }
  return counters_[index - 1];
}

void StackUseCounter::count_event(const Event& event) {
  ++uses_.events;
  live_.start_event(event);
  const bool is_temporary = last_made_.frees_temporary(event);
  const Block* const ended = event.ends_block() ? live_.end_block(event.old_tag) : nullptr;
  if (ended != nullptr) {
    Counter& counter = counter_of(ended->stack);
    counter.live.change(peaks_).remove_block(ended->size);
    counter.temporary += is_temporary;
    live_total_.remove_block(ended->size);
  }
  if (!event.makes_block() || !live_.begin_block(event, {.stack = event.stack})) return;
  const std::uint64_t size = event.bytes();
  Counter& counter = counter_of(event.stack);
  counter.allocated.add_block(size);
  counter.live.change(peaks_).add_block(size);
  live_total_.add_block(size);
  if (live_total_.bytes <= peak_bytes_) return;
  peak_bytes_ = live_total_.bytes;
  ++peaks_;
  uses_.peak_event = uses_.events;
  uses_.peak_time_ns = event.time_ns;
}

StackUses StackUseCounter::finish() {
  uses_.stacks.reserve(counters_.size());
  for (const Counter& counter : counters_) {
    uses_.stacks.push_back(
        {counter.stack, {counter.allocated, counter.live.at_peak(peaks_), counter.live.now(), counter.temporary}});
  }
  std::sort(uses_.stacks.begin(), uses_.stacks.end(),
            [](const StackUses::Entry& a, const StackUses::Entry& b) { return a.stack < b.stack; });
  return std::move(uses_);
}

}  // namespace cmt::lifetimes
