#include "preload/collector/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace cmt::collector {
namespace {

int open_unnamed(const std::string& folder) { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

}  // namespace

Backlog::~Backlog() {
  if (file_ >= 0) ::close(file_);
}

bool Backlog::has_room() {
  const std::lock_guard lock(mutex_);
  return memory_bytes_ < memory_max_ || (!has_file_failed_ && has_file_room(segment_bytes));
}

void Backlog::put(WorkItem item) {
  Queued queued{.item = std::move(item)};
  const std::uint64_t bytes = queued.item.records.bytes();
  std::unique_lock lock(mutex_);
  const bool fits = memory_bytes_ + bytes <= memory_max_;
  lock.unlock();
  if (!fits && bytes != 0) write_to_file(queued);
  lock.lock();
  if (!queued.offset) memory_bytes_ += bytes;
  queue_.push_back(std::move(queued));
  lock.unlock();
  arrived_.notify_one();
}

bool Backlog::has_file_room(std::uint64_t bytes) const {
  return current_bytes_ + bytes <= segment_bytes ||
         (bytes <= segment_bytes &&
          (!free_segments_.empty() || (unread_items_.size() + 1) * segment_bytes <= file_max_));
}

/// The offset to write to. Nothing where the file has no room or cannot be made.
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
    }
    current_segment_ = free_segments_.back();
    free_segments_.pop_back();
    current_bytes_ = 0;
  }
  ++unread_items_[current_segment_];
  return current_segment_ * segment_bytes + std::exchange(current_bytes_, current_bytes_ + bytes);
}

void Backlog::release_in_file(std::uint64_t offset) {
  const std::size_t segment = offset / segment_bytes;
  if (--unread_items_[segment] != 0) return;
  if (segment == current_segment_) {
    current_bytes_ = 0;
  } else {
    free_segments_.push_back(segment);
  }
}

/// Moves the words of an item's records to the file. They stay in memory where that fails.
void Backlog::write_to_file(Queued& queued) {
  Packed& records = queued.item.records;
  const auto offset = reserve_in_file(records.bytes());
  if (!offset) return;
  const auto written = ::pwrite(file_, records.words.get(), records.bytes(), static_cast<off_t>(*offset));
  if (written != static_cast<ssize_t>(records.bytes())) {
    const std::lock_guard lock(mutex_);
    has_file_failed_ = true;
    return release_in_file(*offset);
  }
  queued.offset = offset;
  records.words.reset();
}

void Backlog::read_from_file(Queued& queued) {
  if (!queued.offset) return;
  Packed& records = queued.item.records;
  records.words = std::make_unique_for_overwrite<std::uint64_t[]>(records.size);
  const auto read = ::pread(file_, records.words.get(), records.bytes(), static_cast<off_t>(*queued.offset));
  if (read == static_cast<ssize_t>(records.bytes())) return;
  lost_records_ += records.count;
  records.count = 0;
}

std::optional<WorkItem> Backlog::wait_for_item(int milliseconds) {
  std::unique_lock lock(mutex_);
  const auto has_one = [this] { return !queue_.empty(); };
  if (!arrived_.wait_for(lock, std::chrono::milliseconds(milliseconds), has_one)) return std::nullopt;
  Queued queued = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  read_from_file(queued);
  lock.lock();
  if (queued.offset) {
    release_in_file(*queued.offset);
  } else {
    memory_bytes_ -= queued.item.records.bytes();
  }
  return std::move(queued.item);
}

}  // namespace cmt::collector
