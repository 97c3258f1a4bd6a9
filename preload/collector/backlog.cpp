#include "preload/collector/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

namespace cmt::collector {

Backlog::~Backlog() {
  if (file_ >= 0) ::close(file_);
}

bool Backlog::has_room() {
  const std::lock_guard lock(mutex_);
  return in_memory_ < memory_max_ || (!file_failed_ && in_file_ < file_max_);
}

void Backlog::put(Parcel parcel) {
  Entry entry{.parcel = std::move(parcel)};
  const std::uint64_t bytes = entry.parcel.records.size() * sizeof(Slot);
  std::unique_lock lock(mutex_);
  if (in_memory_ + bytes > memory_max_ && bytes != 0 && spill(entry)) {
    in_file_ += bytes;
  } else {
    in_memory_ += bytes;
  }
  entries_.push_back(std::move(entry));
  lock.unlock();
  arrived_.notify_one();
}

// The file is used from its begin again each time it has become empty, so it is as large as the longest lag.
bool Backlog::spill(Entry& entry) {
  if (file_ < 0 && !file_failed_) file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  file_failed_ = file_ < 0;
  if (in_file_ == 0) file_end_ = 0;
  const std::uint64_t bytes = entry.parcel.records.size() * sizeof(Slot);
  if (file_failed_ || file_end_ + bytes > file_max_) return false;
  const auto written = ::pwrite(file_, entry.parcel.records.data(), bytes, static_cast<off_t>(file_end_));
  if (written != static_cast<ssize_t>(bytes)) return false;
  entry.offset = file_end_;
  entry.count = entry.parcel.records.size();
  file_end_ += bytes;
  std::vector<Slot>().swap(entry.parcel.records);
  return true;
}

void Backlog::fetch(Entry& entry) {
  if (entry.count == 0) return;
  const std::uint64_t bytes = entry.count * sizeof(Slot);
  entry.parcel.records.resize(entry.count);
  const auto got = ::pread(file_, entry.parcel.records.data(), bytes, static_cast<off_t>(entry.offset));
  if (got < 0) entry.parcel.records.clear();
}

std::optional<Parcel> Backlog::take(int milliseconds) {
  std::unique_lock lock(mutex_);
  const auto has_one = [this] { return !entries_.empty(); };
  if (!arrived_.wait_for(lock, std::chrono::milliseconds(milliseconds), has_one)) return std::nullopt;
  Entry entry = std::move(entries_.front());
  entries_.pop_front();
  lock.unlock();
  fetch(entry);
  const std::uint64_t bytes = entry.parcel.records.size() * sizeof(Slot);
  lock.lock();
  (entry.count != 0 ? in_file_ : in_memory_) -= bytes;
  return std::move(entry.parcel);
}

}  // namespace cmt::collector
