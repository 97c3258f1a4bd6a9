#include "preload/collector/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace cmt::collector {

Backlog::~Backlog() {
  if (file_ >= 0) ::close(file_);
}

bool Backlog::has_room() {
  const std::lock_guard lock(mutex_);
  return in_memory_ < memory_max_ || (!file_failed_ && has_place(place_bytes));
}

void Backlog::put(Parcel parcel) {
  Entry entry{.parcel = std::move(parcel)};
  const std::uint64_t bytes = entry.parcel.records.bytes();
  std::unique_lock lock(mutex_);
  const bool fits = in_memory_ + bytes <= memory_max_;
  lock.unlock();
  if (!fits && bytes != 0) spill(entry);
  lock.lock();
  if (entry.bytes == 0) in_memory_ += bytes;
  entries_.push_back(std::move(entry));
  lock.unlock();
  arrived_.notify_one();
}

bool Backlog::has_place(std::uint64_t bytes) const {
  return filled_ + bytes <= place_bytes ||
         (bytes <= place_bytes && (!free_.empty() || (unread_.size() + 1) * place_bytes <= file_max_));
}

std::optional<std::uint64_t> Backlog::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!has_place(bytes)) return std::nullopt;
  if (filled_ + bytes > place_bytes) {
    if (free_.empty()) {
      free_.push_back(unread_.size());
      unread_.push_back(0);
    }
    place_ = free_.back();
    free_.pop_back();
    filled_ = 0;
  }
  ++unread_[place_];
  return place_ * place_bytes + std::exchange(filled_, filled_ + bytes);
}

void Backlog::release(std::uint64_t offset) {
  const std::size_t place = offset / place_bytes;
  if (--unread_[place] != 0) return;
  if (place == place_) {
    filled_ = 0;
  } else {
    free_.push_back(place);
  }
}

bool Backlog::opens_file() {
  if (file_ < 0 && !file_failed_) file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0 && !file_failed_) file_ = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return file_ >= 0 && !file_failed_;
}

// What cannot be written stays in memory.
void Backlog::spill(Entry& entry) {
  Packed& records = entry.parcel.records;
  const std::uint64_t bytes = records.bytes();
  const auto offset = reserve(bytes);
  if (!offset) return;
  const bool is_written = opens_file() && ::pwrite(file_, records.words.get(), bytes, static_cast<off_t>(*offset)) ==
                                              static_cast<ssize_t>(bytes);
  if (!is_written) {
    const std::lock_guard lock(mutex_);
    file_failed_ = true;
    return release(*offset);
  }
  entry.offset = *offset;
  entry.bytes = bytes;
  records.words.reset();
  records.size = 0;
}

void Backlog::fetch(Entry& entry) {
  if (entry.bytes == 0) return;
  Packed& records = entry.parcel.records;
  records.size = entry.bytes / sizeof records.words[0];
  records.words = std::make_unique_for_overwrite<std::uint64_t[]>(records.size);
  const auto got = ::pread(file_, records.words.get(), entry.bytes, static_cast<off_t>(entry.offset));
  if (got == static_cast<ssize_t>(entry.bytes)) return;
  lost_ += records.count;
  records.count = 0;
}

std::optional<Parcel> Backlog::take(int milliseconds) {
  std::unique_lock lock(mutex_);
  const auto has_one = [this] { return !entries_.empty(); };
  if (!arrived_.wait_for(lock, std::chrono::milliseconds(milliseconds), has_one)) return std::nullopt;
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  lock.unlock();
  fetch(entry);
  const std::uint64_t bytes = entry.parcel.records.bytes();
  lock.lock();
  if (entry.bytes != 0) {
    release(entry.offset);
  } else {
    in_memory_ -= bytes;
  }
  return std::move(entry.parcel);
}

}  // namespace cmt::collector
