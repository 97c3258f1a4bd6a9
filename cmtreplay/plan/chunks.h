#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
class Chunks {
 public:
  virtual ~Chunks() = default;
  virtual Chunk take() = 0;
};

/// Keeps all: a trace prepared whole. What is more than `bytes_max` it does not keep, and says so; it then holds
/// nothing.
class PreparedChunks : public Chunks {
 public:
  explicit PreparedChunks(std::uint64_t bytes_max);
  ~PreparedChunks() override;
  PreparedChunks(const PreparedChunks&) = delete;
  PreparedChunks& operator=(const PreparedChunks&) = delete;

  Chunk take() override;

  /// Whether all that was taken is kept.
  bool whole() const { return whole_; }
  std::uint32_t count() const { return whole_ ? count_ : 0; }
  const SharedMemory& memory() const { return memory_; }

 private:
  void give_up();

  SharedMemory memory_{"operations"};
  std::uint64_t bytes_max_;
  char* begin_ = nullptr;
  std::uint64_t grown_bytes_ = 0;
  std::uint32_t count_ = 0;
  bool whole_ = true;
  std::vector<std::uint64_t> scratch_;
};

/// Keeps nothing: for a pass that only counts.
class NoChunks : public Chunks {
 public:
  Chunk take() override { return {.number = 0, .words = words_.data()}; }

 private:
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(chunk_words);
};

/// A fixed number of chunks that the worker gives back: a trace that is streamed.
class RingChunks : public Chunks {
 public:
  /// `when_full` is called where none is free, and returns when one may be.
  RingChunks(std::uint32_t count, std::function<void()> when_full);
  ~RingChunks() override;
  RingChunks(const RingChunks&) = delete;
  RingChunks& operator=(const RingChunks&) = delete;

  /// `freed`: a byte a chunk, in which the worker gives chunks back.
  void open(std::uint8_t* freed) { freed_ = freed; }
  Chunk take() override;

  std::uint32_t count() const { return count_; }
  const SharedMemory& memory() const { return memory_; }

 private:
  void collect();

  std::uint32_t count_;
  std::function<void()> when_full_;
  SharedMemory memory_;
  std::uint64_t* begin_;
  std::uint8_t* freed_ = nullptr;
  std::vector<std::uint32_t> free_;  ///< the next at the back
};

}  // namespace cmt::replay
