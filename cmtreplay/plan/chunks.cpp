#include "cmtreplay/plan/chunks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <system_error>

namespace cmt::replay {
namespace {

constexpr std::uint64_t chunk_bytes = chunk_words * sizeof(std::uint64_t);
constexpr std::uint64_t growth_bytes = std::uint64_t{1} << 22;

}  // namespace

// The file grows under a mapping that is as large as it may get: what lies behind the file's end is only addresses.
PreparedChunks::PreparedChunks(std::uint64_t bytes_max) : bytes_max_(bytes_max / growth_bytes * growth_bytes) {
  if (bytes_max_ == 0) return;
  void* const begin = mmap(nullptr, bytes_max_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_.fd(), 0);
  if (begin == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping operations");
  begin_ = static_cast<char*>(begin);
}

PreparedChunks::~PreparedChunks() {
  if (begin_) munmap(begin_, bytes_max_);
}

Chunk PreparedChunks::take() {
  const std::uint64_t place = count_ * chunk_bytes;
  if (whole_ && place + chunk_bytes > bytes_max_) give_up();
  if (!whole_) return {.number = 0, .words = scratch_.data()};
  if (place + chunk_bytes > grown_bytes_) {
    // Memory that is merely promised would end us with SIGBUS at the first page that is not there.
    const int error = posix_fallocate(memory_.fd(), static_cast<off_t>(grown_bytes_), static_cast<off_t>(growth_bytes));
    if (error != 0) throw std::system_error(error, std::generic_category(), "shared memory for operations");
    grown_bytes_ += growth_bytes;
  }
  return {.number = count_++, .words = reinterpret_cast<std::uint64_t*>(begin_ + place)};
}

/// Lanes may still write to the chunks that they have: private pages stand in for them.
void PreparedChunks::give_up() {
  whole_ = false;
  scratch_.resize(chunk_words);
  if (begin_ && mmap(begin_, bytes_max_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "operations");
  if (ftruncate(memory_.fd(), 0) != 0) throw std::system_error(errno, std::generic_category(), "operations");
}

RingChunks::RingChunks(std::uint32_t count, std::function<void()> when_full)
    : count_(count),
      when_full_(std::move(when_full)),
      memory_("operations", count * chunk_bytes),
      begin_(static_cast<std::uint64_t*>(map_shared(memory_.fd(), count * chunk_bytes))),
      free_(count) {
  std::iota(free_.rbegin(), free_.rend(), std::uint32_t{0});
}

RingChunks::~RingChunks() { unmap_shared(begin_, count_ * chunk_bytes); }

Chunk RingChunks::take() {
  for (collect(); free_.empty(); collect()) when_full_();
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return {.number = number, .words = begin_ + std::uint64_t{number} * chunk_words};
}

void RingChunks::collect() {
  if (!free_.empty()) return;
  for (std::uint32_t number = count_; number-- > 0;) {
    if (__atomic_load_n(&freed_[number], __ATOMIC_ACQUIRE) == 0) continue;
    __atomic_store_n(&freed_[number], std::uint8_t{0}, __ATOMIC_RELAXED);
    free_.push_back(number);
  }
}

}  // namespace cmt::replay
