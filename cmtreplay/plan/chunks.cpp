#include "cmtreplay/plan/chunks.h"

#include <numeric>

namespace cmt::replay {
namespace {

constexpr std::uint64_t chunk_bytes = chunk_words * sizeof(std::uint64_t);
constexpr std::uint64_t growth_bytes = std::uint64_t{1} << 22;

}  // namespace

Chunk ChunkSource::chunk(std::uint32_t number) const {
  return {.number = number, .words = reinterpret_cast<std::uint64_t*>(mapping_.begin() + number * chunk_bytes)};
}

// The memory grows under a mapping that is as large as it may get.
PreparedChunks::PreparedChunks(std::uint64_t bytes_max)
    : ChunkSource(0, bytes_max / growth_bytes * growth_bytes), bytes_max_(bytes_max / growth_bytes * growth_bytes) {}

Chunk PreparedChunks::next_chunk() {
  const std::uint64_t offset = count_ * chunk_bytes;
  if (whole_ && offset + chunk_bytes > bytes_max_) discard();
  if (!whole_) return {.number = 0, .words = scratch_.data()};
  if (offset + chunk_bytes > grown_bytes_) {
    memory_.grow(grown_bytes_, grown_bytes_ + growth_bytes);
    grown_bytes_ += growth_bytes;
  }
  return chunk(count_++);
}

/// Lanes still write to the chunk that each of them has: those pages come back, and nobody reads them.
void PreparedChunks::discard() {
  whole_ = false;
  count_ = 0;
  scratch_.resize(chunk_words);
  memory_.discard_pages(grown_bytes_);
}

ChunkRing::ChunkRing(std::uint32_t count, std::function<void()> when_full)
    : ChunkSource(count * chunk_bytes, count * chunk_bytes), when_full_(std::move(when_full)), free_(count) {
  count_ = count;
  std::iota(free_.rbegin(), free_.rend(), std::uint32_t{0});
}

Chunk ChunkRing::next_chunk() {
  for (collect_freed(); free_.empty(); collect_freed()) when_full_();
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return chunk(number);
}

void ChunkRing::collect_freed() {
  if (!free_.empty()) return;
  for (std::uint32_t number = count_; number-- > 0;) {
    if (__atomic_load_n(&freed_[number], __ATOMIC_ACQUIRE) == 0) continue;
    __atomic_store_n(&freed_[number], std::uint8_t{0}, __ATOMIC_RELAXED);
    free_.push_back(number);
  }
}

/// Getting a chunk may publish the words so far. So the link is written afterwards, and the lane ends before it until
/// then.
void LaneWriter::start_chunk(Lane& lane) {
  const Chunk next = chunks_.next_chunk();
  if (lane.chunks == 0)
    lane.first_chunk = next.number;
  else
    lane.words[lane.used] = operation_word(operation_control, control_link, next.number);
  lane.words = next.words;
  lane.used = 0;
  ++lane.chunks;
}

}  // namespace cmt::replay
