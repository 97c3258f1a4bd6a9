#include "cmtreplay/run/feed.h"

#include <algorithm>
#include <bit>

namespace cmt::replay {
void publish(lane& lane, std::uint32_t first_chunk, std::uint64_t position) {
  const std::uint64_t before = __atomic_load_n(&lane.published, __ATOMIC_RELAXED);
  if (before == position) return;
  if (before == 0) lane.first_chunk = first_chunk;
  __atomic_store_n(&lane.published, position, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&lane.sleeping, __ATOMIC_SEQ_CST) != 0)
    futex_wake_all(reinterpret_cast<const std::uint32_t*>(&lane.published), 1);
}

ControlSizes PreparedFeed::sizes() const {
  return {.lanes = trace_.plan().lanes,
          .epochs = std::bit_ceil(static_cast<std::uint32_t>(std::max<std::size_t>(trace_.plan().epochs.size(), 1)))};
}

void PreparedFeed::attach(ControlRegion& region) {
  region_ = &region;
  std::copy(trace_.plan().epochs.begin(), trace_.plan().epochs.end(), region.epochs().begin());
}

/// Lane 0 last: at its end the worker checks whether the others have come to theirs.
void PreparedFeed::publish_until(const Mark& mark) {
  for (std::size_t i = mark.positions.size(); i-- > 0;)
    publish(region_->lanes()[i], trace_.plan().first_chunks[i], mark.positions[i]);
}

void PreparedFeed::publish_rest() {
  for (std::size_t i = trace_.plan().ends.size(); i-- > 0;)
    publish(region_->lanes()[i], trace_.plan().first_chunks[i], trace_.plan().ends[i]);
}

StreamedFeed::StreamedFeed(const PreparedTrace& trace, Order order, std::function<void()> when_full)
    : trace_(trace),
      order_(order),
      when_full_(std::move(when_full)),
      ring_(ring_chunks + trace.plan().lanes,
            [this] {
              publish();
              when_full_();
            }),
      writer_(ring_),
      reader_(trace.open()) {}

/// Epochs that may have begun and not ended: as many as the words of the ring can hold, and some more.
ControlSizes StreamedFeed::sizes() const {
  return {.lanes = trace_.plan().lanes,
          .epochs = std::bit_ceil(ring_.count() * chunk_words / epoch_operations + 8),
          .ring_chunks = ring_.count()};
}

void StreamedFeed::attach(ControlRegion& region) {
  region_ = &region;
  ring_.attach(region.freed());
  router_.emplace(writer_, order_, trace_.paced(), [this](std::uint32_t epoch, bool first) {
    std::uint32_t& pending = region_->epochs()[epoch & region_->get().epoch_mask];
    if (first)
      __atomic_store_n(&pending, 1U, __ATOMIC_SEQ_CST);
    else
      __atomic_fetch_add(&pending, 1U, __ATOMIC_SEQ_CST);
  });
}

void StreamedFeed::route_until(std::uint64_t event) {
  constexpr std::uint64_t quarter = ring_chunks * chunk_words / 4;
  while (event_ < event) {
    if (batch_.empty()) batch_ = reader_.read();
    if (batch_.empty()) return;
    const std::size_t count = std::min<std::uint64_t>(batch_.size(), event - event_);
    for (const Event& next : batch_.first(count)) router_->route(next);
    batch_ = batch_.subspan(count);
    event_ += count;
    if (router_->counts().operations - published_operations_ >= quarter) publish();
  }
}

void StreamedFeed::publish_until(const Mark& mark) {
  route_until(mark.event);
  publish();
}

void StreamedFeed::publish_rest() {
  route_until(UINT64_MAX);
  router_->finish();
  publish();
}

void StreamedFeed::publish() {
  published_operations_ = router_->counts().operations;
  for (std::uint32_t lane = writer_.lanes(); lane-- > 0;)
    replay::publish(region_->lanes()[lane], writer_.first_chunk(lane), writer_.position(lane));
}

}  // namespace cmt::replay
