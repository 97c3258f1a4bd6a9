// Weighs samples, and adds up the blocks of each stack.
#include "preload/collector/profile/stack_profile.h"

#include <algorithm>
#include <cmath>

namespace cmt::collector {

double blocks_of_sample(std::uint64_t bytes, std::uint64_t interval) {
  if (interval == 0 || bytes == 0) return interval == 0 ? 1 : 0;
  return -1 / std::expm1(-static_cast<double>(bytes) / static_cast<double>(interval));
}

void StackProfile::make(Tag tag, std::uint64_t bytes, StackId stack) {
  if (stack >= entry_of_stack_.size()) entry_of_stack_.resize(stack + 1 + stack / 4);
  std::uint32_t& entry = entry_of_stack_[stack];
  if (entry == 0) {
    made_.push_back({.stack = stack});
    entry = static_cast<std::uint32_t>(made_.size());
  }
  const double blocks = blocks_of_sample(bytes, interval_);
  made_[entry - 1].blocks += blocks;
  made_[entry - 1].bytes += blocks * static_cast<double>(bytes);
  ++blocks_made_;
  live_.insert({tag, bytes, entry - 1});
}

void StackProfile::add(const EventBatch& batch) {
  const BookedEvent* other = batch.others().data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const BlockEvent& event = batch.events()[i];
    const StackId stack = batch.stacks().empty() ? 0 : batch.stacks()[i];
    if (event.tag != 0) {
      event.makes_block ? make(event.tag, event.block_size, stack) : void(live_.erase(event.tag));
      continue;
    }
    const Event& odd = other++->event;
    if (odd.ends_block()) live_.erase(odd.old_tag);
    if (odd.tag != 0) make(odd.tag, odd.bytes(), stack);
    if (odd.kind == Kind::sampling_interval) interval_ = odd.size, ++raises_;
  }
}

std::vector<StackProfile::Entry> StackProfile::entries() const {
  std::vector<Entry> entries;
  entries.reserve(made_.size());
  for (const Made& made : made_) entries.push_back({made.stack, {made.blocks, made.bytes, 0, 0}});
  live_.for_each([&](const Block& block) {
    const double blocks = blocks_of_sample(block.bytes, interval_);
    entries[block.entry].sums[2] += blocks;
    entries[block.entry].sums[3] += blocks * static_cast<double>(block.bytes);
  });
  return entries;
}

std::size_t join_smallest(std::vector<StackProfile::Entry>& entries, std::size_t most) {
  if (entries.size() <= most) return 0;
  double allocated = 1, live = 1;
  for (const auto& entry : entries) allocated += entry.sums[1], live += entry.sums[3];
  const auto part = [&](const auto& entry) { return entry.sums[1] / allocated + entry.sums[3] / live; };
  const auto first = entries.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(entries.begin(), first, entries.end(),
                   [&](const auto& a, const auto& b) { return part(a) > part(b); });
  StackProfile::Entry rest{.stack = joined_stacks};
  for (auto entry = first; entry != entries.end(); ++entry) {
    for (std::size_t i = 0; i < rest.sums.size(); ++i) rest.sums[i] += entry->sums[i];
  }
  const std::size_t joined = entries.size() - most;
  entries.erase(first, entries.end());
  entries.push_back(rest);
  return joined;
}

}  // namespace cmt::collector
