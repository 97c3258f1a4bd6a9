#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"

namespace cmt::replay {

/// A piece of a lane: chunk_words words, and its number.
struct Chunk {
  std::uint32_t number = 0;
  std::uint64_t* words = nullptr;
};

/// Where lanes get their chunks from.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual Chunk next_chunk() = 0;

  std::uint32_t count() const { return count_; }
  const SharedMemory& memory() const { return memory_; }

 protected:
  /// `bytes` zeros, in a mapping that has room for `bytes_max`.
  ChunkSource(std::uint64_t bytes, std::uint64_t bytes_max)
      : memory_("operations", bytes), mapping_(memory_, bytes_max) {}

  Chunk chunk(std::uint32_t number) const;

  std::uint32_t count_ = 0;
  SharedMemory memory_;

 private:
  MappedMemory mapping_;
};

/// Keeps all chunks: a trace that is prepared whole. Where they take more than `bytes_max` it keeps none of them, and
/// whole() says so.
class PreparedChunks : public ChunkSource {
 public:
  explicit PreparedChunks(std::uint64_t bytes_max);

  Chunk next_chunk() override;

  bool whole() const { return whole_; }

 private:
  void discard();

  std::uint64_t bytes_max_;
  std::uint64_t grown_bytes_ = 0;
  bool whole_ = true;
  std::vector<std::uint64_t> scratch_;
};

/// A fixed number of chunks that the worker gives back: a trace that is streamed.
class ChunkRing : public ChunkSource {
 public:
  /// `when_full` is called while no chunk is free, and returns when one may be.
  ChunkRing(std::uint32_t count, std::function<void()> when_full);

  /// `freed`: a byte for each chunk, which the worker sets when it has left the chunk.
  void attach(std::uint8_t* freed) { freed_ = freed; }
  Chunk next_chunk() override;

 private:
  void collect_freed();

  std::function<void()> when_full_;
  std::uint8_t* freed_ = nullptr;
  std::vector<std::uint32_t> free_;  ///< the next one is at the back
};

/// Writes lanes into chunks: links the chunks, and never lays an operation across two.
class LaneWriter {
 public:
  explicit LaneWriter(ChunkSource& chunks) : chunks_(chunks) {}

  /// Adds words that belong together, at most 8. A lane exists from its first word on.
  void append(std::uint32_t lane, std::span<const std::uint64_t> words) {
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    Lane& its = lanes_[lane];
    if (its.used + words.size() + 1 > chunk_words) start_chunk(its);
    for (const std::uint64_t word : words) its.words[its.used++] = word;
  }

  void append(std::uint32_t lane, std::uint64_t word) { append(lane, {&word, 1}); }

  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }

  /// Words of a lane so far, with its links and the words left empty before them. Where the last word ends right before
  /// a link that is not written yet, the next word is in the next chunk.
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

  void start_chunk(Lane& lane);

  ChunkSource& chunks_;
  std::vector<Lane> lanes_;
};

}  // namespace cmt::replay
