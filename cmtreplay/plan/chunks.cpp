// Hands out chunks, and moves them to a temporary file if they take too much memory.
#include "cmtreplay/plan/chunks.h"

#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "libcmt/trace/files.h"

namespace cmt::replay {
namespace {

constexpr std::uint64_t chunk_bytes = chunk_words * sizeof(std::uint64_t);
constexpr std::uint64_t growth_bytes = std::uint64_t{1} << 22;

off_t offset_of(std::uint32_t chunk) { return static_cast<off_t>(chunk * chunk_bytes); }

[[noreturn]] void fail_in_spool(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string(what) + " operations in " + temporary_folder());
}

}  // namespace

Chunk ChunkSource::chunk(std::uint32_t number) const {
  return {.number = number, .words = reinterpret_cast<std::uint64_t*>(mapping_.begin() + number * chunk_bytes)};
}

Spool::Spool() : file_(open_temporary_file()) {}

void Spool::write(std::uint32_t chunk, const std::uint64_t* words) {
  const char* const bytes = reinterpret_cast<const char*>(words);
  for (std::uint64_t done = 0; done < chunk_bytes;) {
    const ssize_t count =
        pwrite(file_.get(), bytes + done, chunk_bytes - done, offset_of(chunk) + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) fail_in_spool("writing");
    if (count > 0) done += static_cast<std::uint64_t>(count);
  }
}

void Spool::read(std::uint32_t chunk, std::uint64_t* words) const {
  char* const bytes = reinterpret_cast<char*>(words);
  std::uint64_t done = 0;
  while (done < chunk_bytes) {
    const ssize_t count =
        pread(file_.get(), bytes + done, chunk_bytes - done, offset_of(chunk) + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) fail_in_spool("reading");
    if (count == 0) break;
    if (count > 0) done += static_cast<std::uint64_t>(count);
  }
  std::memset(bytes + done, 0, chunk_bytes - done);
}

// The mapping is as large as the memory may get, and the memory grows under it.
PreparedChunks::PreparedChunks(std::uint64_t bytes_max)
    : ChunkSource(0, bytes_max / growth_bytes * growth_bytes), bytes_max_(bytes_max / growth_bytes * growth_bytes) {}

Chunk PreparedChunks::next_chunk() {
  const std::uint64_t offset = count_ * chunk_bytes;
  if (in_memory() && offset + chunk_bytes > bytes_max_) spill();
  closed_.emplace_back();
  if (!in_memory()) return {.number = count_++, .words = scratch()};
  if (offset + chunk_bytes > grown_bytes_) {
    memory_.grow(grown_bytes_, grown_bytes_ + growth_bytes);
    grown_bytes_ += growth_bytes;
  }
  return chunk(count_++);
}

void PreparedChunks::close_chunk(const Chunk& chunk, std::uint32_t lane, std::uint32_t words) {
  assert(chunk.number < closed_.size() && closed_[chunk.number].words == 0);
  assert(words != 0 && words < chunk_words);  // and one for the link
  closed_[chunk.number] = {.lane = lane, .words = words};
  if (in_memory()) return;
  try {
    if (kept()) spool_->write(chunk.number, chunk.words);
  } catch (const std::system_error& error) {
    give_up(error);
  }
  if (chunk.number >= count_in_memory_) unused_scratch_.push_back(chunk.words);
}

void PreparedChunks::read(std::uint32_t number, std::uint64_t* words) const {
  assert(kept() && closed(number).words != 0);
  if (spool_)
    spool_->read(number, words);
  else
    std::memcpy(words, chunk(number).words, chunk_bytes);
}

/// Moves all closed chunks to the file. Lanes go on writing to the chunks in memory that are not closed.
void PreparedChunks::spill() {
  count_in_memory_ = count_;
  try {
    spool_.emplace();
    for (std::uint32_t number = 0; number < count_; ++number) {
      if (closed_[number].words == 0) continue;
      spool_->write(number, chunk(number).words);
      memory_.discard_pages(number * chunk_bytes, chunk_bytes);
    }
  } catch (const std::system_error& error) {
    give_up(error);
  }
}

/// Keeps no chunk from now on. Lanes go on writing, and nobody reads their words.
void PreparedChunks::give_up(const std::system_error& error) {
  problem_ = error.what();
  spool_.reset();
}

std::uint64_t* PreparedChunks::scratch() {
  if (unused_scratch_.empty()) {
    scratch_.push_back(std::make_unique<std::uint64_t[]>(chunk_words));
    return scratch_.back().get();
  }
  std::uint64_t* const words = unused_scratch_.back();
  unused_scratch_.pop_back();
  return words;
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
  assert(freed_ != nullptr);
  for (std::uint32_t number = count_; number-- > 0;) {
    if (__atomic_load_n(&freed_[number], __ATOMIC_ACQUIRE) == 0) continue;
    __atomic_store_n(&freed_[number], std::uint8_t{0}, __ATOMIC_RELAXED);
    free_.push_back(number);
  }
}

/// next_chunk() may publish the words so far. So the link is written after that call, and is not published before it is
/// written.
void LaneWriter::start_chunk(std::uint32_t lane) {
  const Chunk next = chunks_.next_chunk();
  Lane& its = lanes_[lane];
  assert(its.chunks == 0 || its.used < chunk_words);
  if (its.chunks == 0) {
    its.first_chunk = next.number;
  } else {
    its.chunk.words[its.used] = operation_word(operation_control, control_link, next.number);
    chunks_.close_chunk(its.chunk, lane, its.used);
  }
  its.chunk = next;
  its.used = 0;
  ++its.chunks;
}

void LaneWriter::finish() {
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    if (lanes_[lane].chunks != 0) chunks_.close_chunk(lanes_[lane].chunk, lane, lanes_[lane].used);
  }
}

}  // namespace cmt::replay
