// Publishes the words of lanes, lane 0 last.
#include "cmtreplay/run/control/feed.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace cmt::replay {
void publish(lane& lane, std::uint32_t first_chunk, std::uint64_t position) {
  const std::uint64_t before = __atomic_load_n(&lane.published, __ATOMIC_RELAXED);
  if (before == position) return;
  assert(position > before);
  if (before == 0) lane.first_chunk = first_chunk;
  __atomic_store_n(&lane.published, position, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&lane.sleeping, __ATOMIC_SEQ_CST) != 0)
    futex_wake_all(reinterpret_cast<const std::uint32_t*>(&lane.published), 1);
}

namespace {

ControlSizes sizes_of(const TracePlan& plan) {
  return {.lanes = plan.lanes,
          .epochs = std::bit_ceil(static_cast<std::uint32_t>(std::max<std::size_t>(plan.epochs.size(), 1)))};
}

}  // namespace

ControlSizes PreparedFeed::sizes() const { return sizes_of(trace_.plan()); }

void PreparedFeed::attach(ControlRegion& region) {
  region_ = &region;
  std::copy(trace_.plan().epochs.begin(), trace_.plan().epochs.end(), region.epochs().begin());
}

/// Publishes lane 0 last: at the end of lane 0 the worker checks whether the others have come to their ends.
void PreparedFeed::publish_until(const Mark& mark) {
  for (std::size_t i = mark.positions.size(); i-- > 0;)
    publish(region_->lanes()[i], trace_.plan().first_chunks[i], mark.positions[i]);
}

void PreparedFeed::publish_rest() {
  for (std::size_t i = trace_.plan().ends.size(); i-- > 0;)
    publish(region_->lanes()[i], trace_.plan().first_chunks[i], trace_.plan().ends[i]);
}

RingFeed::RingFeed(const PreparedTrace& trace, std::function<void()> when_full)
    : trace_(trace), when_full_(std::move(when_full)), ring_(ring_chunks + trace.plan().lanes, [this] {
        publish();
        when_full_();
      }) {}

void RingFeed::attach(ControlRegion& region) {
  region_ = &region;
  ring_.attach(region.freed());
}

ControlSizes CopyingFeed::sizes() const {
  ControlSizes sizes = sizes_of(trace_.plan());
  sizes.ring_chunks = ring_.count();
  return sizes;
}

void CopyingFeed::attach(ControlRegion& region) {
  RingFeed::attach(region);
  std::copy(trace_.plan().epochs.begin(), trace_.plan().epochs.end(), region.epochs().begin());
}

void CopyingFeed::copy_until(const std::vector<std::uint64_t>& positions) {
  lanes_short_ = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    lanes_[i].wanted = positions[i];
    if (lanes_[i].end < positions[i]) ++lanes_short_;
  }
  for (std::uint32_t copied = 1; lanes_short_ != 0; ++copied) {
    copy_chunk();
    if (copied % (ring_chunks / 4) == 0) publish();
  }
  publish();
}

void CopyingFeed::copy_chunk() {
  const Chunk chunk = ring_.next_chunk();
  const ClosedChunk& closed = trace_.chunks().closed(next_);
  trace_.chunks().read(next_++, chunk.words);
  assert(closed.lane < lanes_.size());
  Lane& lane = lanes_[closed.lane];
  const bool was_short = lane.end < lane.wanted;
  if (lane.chunks == 0)
    lane.first_chunk = chunk.number;
  else
    lane.words[lane.used] = operation_word(operation_control, control_link, chunk.number);
  lane.words = chunk.words;
  lane.used = closed.words;
  lane.end = lane.chunks++ * chunk_words + closed.words;
  if (was_short && lane.end >= lane.wanted) --lanes_short_;
}

/// Publishes lane 0 last, as PreparedFeed does.
void CopyingFeed::publish() {
  for (std::size_t i = lanes_.size(); i-- > 0;) {
    const Lane& lane = lanes_[i];
    if (lane.chunks != 0) replay::publish(region_->lanes()[i], lane.first_chunk, std::min(lane.end, lane.wanted));
  }
}

PlanningFeed::PlanningFeed(const PreparedTrace& trace, Order order, std::function<void()> when_full)
    : RingFeed(trace, std::move(when_full)),
      order_(order),
      writer_(ring_),
      writes_(trace.page_uses()),
      reader_(trace.open()) {}

/// The epochs that may have begun and not ended are as many as the words of the ring can hold, and some more.
ControlSizes PlanningFeed::sizes() const {
  return {.lanes = trace_.plan().lanes,
          .epochs = std::bit_ceil(ring_.count() * chunk_words / epoch_operations + 8),
          .ring_chunks = ring_.count()};
}

void PlanningFeed::attach(ControlRegion& region) {
  RingFeed::attach(region);
  router_.emplace(writer_, order_, trace_.timed(), [this](std::uint32_t epoch, bool first) {
    std::uint32_t& pending = region_->epochs()[epoch & region_->get().epoch_mask];
    if (first)
      __atomic_store_n(&pending, 1U, __ATOMIC_SEQ_CST);
    else
      __atomic_fetch_add(&pending, 1U, __ATOMIC_SEQ_CST);
  });
}

void PlanningFeed::route_until(std::uint64_t event) {
  assert(router_);
  constexpr std::uint64_t quarter = ring_chunks * chunk_words / 4;
  while (event_ < event) {
    if (batch_.empty()) batch_ = reader_.read();
    if (batch_.empty()) return;
    const std::size_t count = std::min<std::uint64_t>(batch_.size(), event - event_);
    for (const Event& next : batch_.first(count)) router_->route(writes_.plan(next));
    batch_ = batch_.subspan(count);
    event_ += count;
    if (router_->counts().operations - published_operations_ >= quarter) publish();
  }
}

void PlanningFeed::publish_until(const Mark& mark) {
  route_until(mark.event);
  publish();
}

void PlanningFeed::publish_rest() {
  route_until(UINT64_MAX);
  router_->finish();
  publish();
}

void PlanningFeed::publish() {
  published_operations_ = router_->counts().operations;
  for (std::uint32_t lane = writer_.lanes(); lane-- > 0;)
    replay::publish(region_->lanes()[lane], writer_.first_chunk(lane), writer_.position(lane));
}

}  // namespace cmt::replay
