/// The memory of lanes: chunks of 8 KiB, which are all kept or go round in a ring, and the writer that fills them.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"
#include "toolkit/process/proc_file.h"

namespace cmt::replay {

/// A piece of a lane: chunk_words words, and its number.
struct Chunk {
  std::uint32_t number = 0;
  std::uint64_t* words = nullptr;
};

/// Hands out chunks to lanes.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual Chunk next_chunk() = 0;
  /// Called when a lane has filled a chunk with so many words. A link to the lane's next chunk follows them, unless it
  /// is the lane's last chunk.
  virtual void close_chunk(const Chunk& chunk, std::uint32_t lane, std::uint32_t words) = 0;

  std::uint32_t count() const { return count_; }
  const SharedMemory& memory() const { return memory_; }

 protected:
  /// Memory of `bytes` zeros, in a mapping that has room for `bytes_max`.
  ChunkSource(std::uint64_t bytes, std::uint64_t bytes_max)
      : memory_("operations", bytes), mapping_(memory_, bytes_max) {}

  Chunk chunk(std::uint32_t number) const;

  std::uint32_t count_ = 0;
  SharedMemory memory_;

 private:
  MappedMemory mapping_;
};

/// Chunks of operations in a temporary file without a name (open_temporary_file(), libcmt/trace/files.h). All functions
/// throw std::system_error.
class Spool {
 public:
  Spool();

  void write(std::uint32_t chunk, const std::uint64_t* words);
  /// Fills up with zeros if the chunk was not written whole.
  void read(std::uint32_t chunk, std::uint64_t* words) const;

 private:
  process::Fd file_;
};

/// The lane that a closed chunk is a part of, and the number of its words without the link.
struct ClosedChunk {
  std::uint32_t lane = 0, words = 0;
};

/// Keeps all chunks: in memory or, if they take more than `bytes_max`, in a temporary file. If that file cannot be
/// written, it keeps none, and problem() says why.
///
/// Chunks are numbered in the order in which lanes began them. So an operation that was planned before a chunk was
/// begun is in a chunk with a smaller number, whatever its lane.
class PreparedChunks : public ChunkSource {
 public:
  explicit PreparedChunks(std::uint64_t bytes_max);

  Chunk next_chunk() override;
  void close_chunk(const Chunk& chunk, std::uint32_t lane, std::uint32_t words) override;

  bool in_memory() const { return !spool_ && problem_.empty(); }
  bool kept() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

  /// Both only for chunks that are closed.
  const ClosedChunk& closed(std::uint32_t number) const {
    assert(number < closed_.size());
    return closed_[number];
  }
  void read(std::uint32_t number, std::uint64_t* words) const;

 private:
  void spill();
  void give_up(const std::system_error& error);
  std::uint64_t* scratch();

  std::uint64_t bytes_max_;
  std::uint64_t grown_bytes_ = 0;
  std::uint32_t count_in_memory_ = 0;  ///< chunks whose words are in memory until they are closed
  std::vector<ClosedChunk> closed_;    ///< by number; 0 words: not closed yet
  std::optional<Spool> spool_;
  std::string problem_;
  std::vector<std::unique_ptr<std::uint64_t[]>> scratch_;  ///< the words of chunks that are not closed
  std::vector<std::uint64_t*> unused_scratch_;
};

/// A fixed number of chunks, which the worker gives back when it has carried out their operations.
class ChunkRing : public ChunkSource {
 public:
  /// `when_full` is called while no chunk is free. It returns when one may be free.
  ChunkRing(std::uint32_t count, std::function<void()> when_full);

  /// `freed`: a byte for each chunk, which the worker sets when it has left the chunk.
  void attach(std::uint8_t* freed) { freed_ = freed; }
  Chunk next_chunk() override;
  void close_chunk(const Chunk&, std::uint32_t, std::uint32_t) override {}

 private:
  void collect_freed();

  std::function<void()> when_full_;
  std::uint8_t* freed_ = nullptr;
  std::vector<std::uint32_t> free_;  ///< the next one is at the back
};

/// Writes lanes into chunks and links the chunks. An operation is never split over two chunks.
class LaneWriter {
 public:
  explicit LaneWriter(ChunkSource& chunks) : chunks_(chunks) {}

  /// Adds the words of one operation, 1 to 8. A lane exists from its first word on.
  void append(std::uint32_t lane, std::span<const std::uint64_t> words) {
    assert(!words.empty() && words.size() <= 8);
    if (lane >= lanes_.size()) lanes_.resize(lane + 1);
    Lane& its = lanes_[lane];
    if (its.used + words.size() + 1 > chunk_words) start_chunk(lane);
    for (const std::uint64_t word : words) its.chunk.words[its.used++] = word;
  }

  void append(std::uint32_t lane, std::uint64_t word) { append(lane, {&word, 1}); }

  /// Called after the last word.
  void finish();

  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }

  /// The words of a lane so far. Links count, and so do words at the end of a chunk that were left empty. The next word
  /// may go to a new chunk; its link is then not counted yet.
  std::uint64_t position(std::uint32_t lane) const {
    assert(lane < lanes_.size());
    const Lane& its = lanes_[lane];
    return its.chunks == 0 ? 0 : (its.chunks - 1) * chunk_words + its.used;
  }

  std::uint32_t first_chunk(std::uint32_t lane) const { return lanes_[lane].first_chunk; }

 private:
  struct Lane {
    Chunk chunk;
    std::uint32_t used = chunk_words;
    std::uint32_t first_chunk = 0;
    std::uint64_t chunks = 0;
  };

  void start_chunk(std::uint32_t lane);

  ChunkSource& chunks_;
  std::vector<Lane> lanes_;
};

}  // namespace cmt::replay
