// The backlog's queue, its spare buffers and its file. The mutex is free while words are copied, written or read.

#include "preload/collector/drain/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

namespace cmt::collector {
namespace {

/// The list of spare buffers for so many words. A buffer has at least a page.
unsigned list_of(std::size_t words) {
  assert(words != 0);
  return static_cast<unsigned>(std::bit_width((words - 1) | 511));
}

std::uint64_t* next_spare(const std::uint64_t* buffer) {
  std::uint64_t* next;
  std::memcpy(&next, buffer, sizeof next);
  return next;
}

int open_unnamed(const std::string& folder) { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

}  // namespace

Backlog::~Backlog() {
  while (first_) first_ = std::move(first_->next);
  for (std::uint64_t* buffer : spare_) {
    while (buffer != nullptr) {
      const std::unique_ptr<std::uint64_t[]> last(buffer);
      buffer = next_spare(buffer);
    }
  }
  if (file_ >= 0) ::close(file_);
}

bool Backlog::has_room() {
  const std::lock_guard lock(mutex_);
  return memory_bytes_ < memory_max_ || (!has_file_failed_ && has_file_room(segment_bytes));
}

Backlog::Waiting Backlog::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

std::uint64_t Backlog::bytes_max() {
  const std::lock_guard lock(mutex_);
  return memory_max_ + (has_file_failed_ ? 0 : file_max_);
}

void Backlog::put_words(WorkItem item, Words words, std::size_t count) {
  assert(count <= words.size());  // a record has one word or two
  auto queued = std::make_unique<Queued>();
  queued->item = std::move(item);
  Packed& records = queued->item.records;
  records.size = words.size();
  records.count = count;
  const std::uint64_t bytes = records.bytes();
  std::unique_lock lock(mutex_);
  const bool fits = memory_bytes_ + bytes <= memory_max_;
  lock.unlock();
  if (bytes != 0 && (fits || !write_to_file(*queued, words))) {
    queued->words = buffer_of(words.size());
    std::copy(words.begin(), words.end(), queued->words.get());
  }
  lock.lock();
  if (!queued->offset) memory_bytes_ += bytes;
  waiting_.records += count;
  waiting_.bytes += bytes;
  waiting_.requests += queued->item.is_request() ? 1 : 0;
  Queued* const added = queued.get();
  (last_ != nullptr ? last_->next : first_) = std::move(queued);
  last_ = added;
  const bool is_enough = has_records(awaited_records_);
  lock.unlock();
  if (is_enough) arrived_.notify_one();
}

/// Returns memory for at least so many words: a spare buffer, or a new one.
std::unique_ptr<std::uint64_t[]> Backlog::buffer_of(std::size_t words) {
  const unsigned list = list_of(words);
  std::unique_lock lock(mutex_);
  if (std::uint64_t* const buffer = spare_[list]; buffer != nullptr) {
    spare_[list] = next_spare(buffer);
    spare_bytes_ -= (std::uint64_t{1} << list) * sizeof *buffer;
    return std::unique_ptr<std::uint64_t[]>(buffer);
  }
  lock.unlock();
  return std::make_unique_for_overwrite<std::uint64_t[]>(std::size_t{1} << list);
}

/// Keeps memory from buffer_of(words) for another use, unless enough is spare.
void Backlog::recycle(std::unique_ptr<std::uint64_t[]> buffer, std::size_t words) {
  assert(buffer != nullptr);
  const unsigned list = list_of(words);
  const std::uint64_t bytes = (std::uint64_t{1} << list) * sizeof buffer[0];
  const std::lock_guard lock(mutex_);  // before `buffer` is freed, if it is
  if (spare_bytes_ + bytes > spare_bytes_max) return;
  spare_bytes_ += bytes;
  std::memcpy(buffer.get(), &spare_[list], sizeof spare_[list]);
  spare_[list] = buffer.release();
}

bool Backlog::has_file_room(std::uint64_t bytes) const {
  return current_bytes_ + bytes <= segment_bytes ||
         (bytes <= segment_bytes &&
          (!free_segments_.empty() || (unread_items_.size() + 1) * segment_bytes <= file_max_));
}

/// Returns the offset to write to, or nullopt if the file has no room or cannot be made.
std::optional<std::uint64_t> Backlog::reserve_in_file(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (has_file_failed_ || !has_file_room(bytes)) return std::nullopt;
  if (file_ < 0) file_ = open_unnamed(folder_);
  if (file_ < 0) file_ = open_unnamed("/tmp");
  has_file_failed_ = file_ < 0;
  if (has_file_failed_) return std::nullopt;
  if (current_bytes_ + bytes > segment_bytes) {
    if (free_segments_.empty()) {
      free_segments_.push_back(unread_items_.size());
      unread_items_.push_back(0);
      free_segments_.reserve(unread_items_.capacity());  // so that release_in_file() allocates nothing
    }
    current_segment_ = free_segments_.back();
    free_segments_.pop_back();
    current_bytes_ = 0;
  }
  assert(current_segment_ < unread_items_.size() && current_bytes_ + bytes <= segment_bytes);
  ++unread_items_[current_segment_];
  return current_segment_ * segment_bytes + std::exchange(current_bytes_, current_bytes_ + bytes);
}

void Backlog::release_in_file(std::uint64_t offset) {
  const std::size_t segment = offset / segment_bytes;
  assert(segment < unread_items_.size() && unread_items_[segment] != 0);
  if (--unread_items_[segment] != 0) return;
  if (segment == current_segment_) {
    current_bytes_ = 0;
  } else {
    free_segments_.push_back(segment);
  }
}

/// Writes the words of an item's records to the file. Returns false on failure.
bool Backlog::write_to_file(Queued& queued, Words words) {
  const auto offset = reserve_in_file(words.size_bytes());
  if (!offset) return false;
  const auto written = ::pwrite(file_, words.data(), words.size_bytes(), static_cast<off_t>(*offset));
  if (written == static_cast<ssize_t>(words.size_bytes())) {
    queued.offset = offset;
    return true;
  }
  const std::lock_guard lock(mutex_);
  has_file_failed_ = true;
  release_in_file(*offset);
  return false;
}

void Backlog::read_from_file(Queued& queued) {
  Packed& records = queued.item.records;
  const auto read = ::pread(file_, records.words.get(), records.bytes(), static_cast<off_t>(*queued.offset));
  if (read == static_cast<ssize_t>(records.bytes())) return;
  lost_records_ += records.count;
  records.size = records.count = 0;
}

bool Backlog::wait_for_records(std::uint64_t count, int milliseconds) {
  std::unique_lock lock(mutex_);
  awaited_records_ = count;
  return arrived_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return has_records(count); });
}

std::optional<WorkItem> Backlog::next_item() {
  std::unique_lock lock(mutex_);
  if (!first_) return std::nullopt;
  std::unique_ptr<Queued> queued = std::move(first_);
  first_ = std::move(queued->next);
  if (!first_) last_ = nullptr;
  lock.unlock();
  Packed& records = queued->item.records;
  const std::uint64_t bytes = records.bytes(), count = records.count;
  if (bytes != 0) records.words = std::make_unique_for_overwrite<std::uint64_t[]>(records.size);
  if (queued->offset) {
    read_from_file(*queued);
  } else if (bytes != 0) {
    std::copy_n(queued->words.get(), records.size, records.words.get());
    recycle(std::move(queued->words), records.size);
  }
  lock.lock();
  if (queued->offset) {
    release_in_file(*queued->offset);
  } else {
    assert(memory_bytes_ >= bytes);
    memory_bytes_ -= bytes;
  }
  assert(waiting_.records >= count && waiting_.bytes >= bytes);
  waiting_.records -= count;
  waiting_.bytes -= bytes;
  waiting_.requests -= queued->item.is_request() ? 1 : 0;
  lock.unlock();
  return std::move(queued->item);
}

}  // namespace cmt::collector
