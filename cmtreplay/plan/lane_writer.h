#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cmtreplay/plan/chunks.h"

namespace cmt::replay {

/// Writes lanes into chunks: links them, and never lays an operation across two.
class LaneWriter {
 public:
  explicit LaneWriter(Chunks& chunks) : chunks_(chunks) {}

  /// Adds words that belong together, at most 8. Lanes come into being as they are named.
  void append(std::uint32_t lane, std::span<const std::uint64_t> words) {
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    Lane& its = lanes_[lane];
    if (its.used + words.size() + 1 > chunk_words) link(its);
    for (const std::uint64_t word : words) its.words[its.used++] = word;
  }

  void append(std::uint32_t lane, std::uint64_t word) { append(lane, {&word, 1}); }

  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }

  /// Words of a lane so far, links and what was left empty before them included. Where the last one ends exactly in
  /// front of a link that is not written yet, the next word stands in the next chunk.
  std::uint64_t position(std::uint32_t lane) const {
    const Lane& its = lanes_[lane];
    return its.chunks == 0 ? 0 : (its.chunks - 1) * chunk_words + its.used;
  }

  std::uint32_t first_chunk(std::uint32_t lane) const { return lanes_[lane].first_chunk; }

 private:
  struct Lane {
    std::uint64_t* words = nullptr;
    std::uint32_t used = chunk_words;
    std::uint32_t first_chunk = 0;
    std::uint64_t chunks = 0;
  };

  void link(Lane& lane);

  Chunks& chunks_;
  std::vector<Lane> lanes_;
};

}  // namespace cmt::replay
