// The backlog's queue, its spare buffers and its file. The mutex is free while words are copied, written or read.

#include "preload/collector/drain/backlog.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#include "libcmt/trace/files.h"

namespace cmt::collector {

Backlog::~Backlog() {
  while (first_) first_ = std::move(first_->next);
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
    reserve_in_slab(*queued, words.size());
    std::copy(words.begin(), words.end(), queued->words);
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

/// Gives an item memory for its words: in the slab that is being filled, in a spare one, or in a new one.
void Backlog::reserve_in_slab(Queued& queued, std::size_t words) {
  std::unique_lock lock(mutex_);
  if (slabs_.empty() || slabs_.back()->used + words > slabs_.back()->size) {
    std::unique_ptr<Slab> slab = take_spare(words);
    if (!slab) {
      const std::size_t waiting = memory_bytes_ / sizeof slab->all[0];
      lock.unlock();
      slab = std::make_unique<Slab>(std::max(words, std::clamp(waiting, slab_words_min, slab_words_max)));
      lock.lock();
    }
    if (!slabs_.empty() && slabs_.back()->untaken == 0) slabs_.pop_back();  // it is too small
    slabs_.push_back(std::move(slab));
  }
  Slab& slab = *slabs_.back();
  assert(slab.used + words <= slab.size);
  queued.slab = &slab;
  queued.words = slab.all.get() + slab.used;
  slab.used += words;
  ++slab.untaken;
}

/// Returns a spare slab with room for so many words, or null.
std::unique_ptr<Backlog::Slab> Backlog::take_spare(std::size_t words) {
  const auto fits = [words](const std::unique_ptr<Slab>& slab) { return slab->size >= words; };
  const auto found = std::find_if(spare_slabs_.rbegin(), spare_slabs_.rend(), fits);
  if (found == spare_slabs_.rend()) return nullptr;
  std::unique_ptr<Slab> slab = std::move(*found);
  spare_slabs_.erase(std::next(found).base());
  spare_words_ -= slab->size;
  return slab;
}

/// Notes that an item's words were taken. Returns a slab that is not needed any more, to be freed without the mutex.
std::unique_ptr<Backlog::Slab> Backlog::release_in_slab(Slab& slab) {
  assert(slab.untaken != 0);
  if (--slab.untaken != 0) return nullptr;
  slab.used = 0;
  if (&slab == slabs_.back().get()) return nullptr;
  const auto found = std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& each) { return each.get() == &slab; });
  std::unique_ptr<Slab> ended = std::move(*found);
  slabs_.erase(found);
  if (spare_words_ + ended->size > spare_words_max) return ended;
  spare_words_ += ended->size;
  spare_slabs_.push_back(std::move(ended));
  return nullptr;
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
  if (file_ < 0) file_ = open_nameless_file(folder_);
  if (file_ < 0) file_ = open_nameless_file("/tmp");
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
    std::copy_n(queued->words, records.size, records.words.get());
  }
  std::unique_ptr<Slab> unneeded;
  lock.lock();
  if (queued->offset) {
    release_in_file(*queued->offset);
  } else {
    assert(memory_bytes_ >= bytes);
    memory_bytes_ -= bytes;
    if (queued->slab != nullptr) unneeded = release_in_slab(*queued->slab);
  }
  assert(waiting_.records >= count && waiting_.bytes >= bytes);
  waiting_.records -= count;
  waiting_.bytes -= bytes;
  waiting_.requests -= queued->item.is_request() ? 1 : 0;
  lock.unlock();
  return std::move(queued->item);
}

}  // namespace cmt::collector
