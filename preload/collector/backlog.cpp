#include "preload/collector/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

namespace cmt::collector {
namespace {

constexpr std::uint64_t parcel_bytes_max = std::uint64_t{ring_slots_big} * slot_bytes;

}  // namespace

Backlog::~Backlog() {
  if (file_ >= 0) ::close(file_);
}

bool Backlog::has_room() {
  const std::lock_guard lock(mutex_);
  return in_memory_ < memory_max_ || (!file_failed_ && place_in_file(parcel_bytes_max).has_value());
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

// In one piece, at the end or, after that, before what is there still.
std::optional<std::uint64_t> Backlog::place_in_file(std::uint64_t bytes) const {
  if (in_file_ == 0) return bytes <= file_max_ ? std::optional<std::uint64_t>(0) : std::nullopt;
  const bool has_turned = file_end_ <= file_begin_;
  if (file_end_ + bytes <= (has_turned ? file_begin_ : file_max_)) return file_end_;
  if (!has_turned && bytes <= file_begin_) return 0;
  return std::nullopt;
}

bool Backlog::spill(Entry& entry) {
  if (file_ < 0 && !file_failed_) file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  file_failed_ = file_ < 0;
  const std::uint64_t bytes = entry.parcel.records.size() * sizeof(Slot);
  const auto place = place_in_file(bytes);
  if (file_failed_ || !place) return false;
  const auto written = ::pwrite(file_, entry.parcel.records.data(), bytes, static_cast<off_t>(*place));
  file_failed_ = written != static_cast<ssize_t>(bytes);
  if (file_failed_) return false;
  if (in_file_ == 0) file_begin_ = *place;
  entry.offset = *place;
  entry.count = entry.parcel.records.size();
  file_end_ = *place + bytes;
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
  if (entry.count != 0) file_begin_ = entry.offset + entry.count * sizeof(Slot);
  (entry.count != 0 ? in_file_ : in_memory_) -= bytes;
  return std::move(entry.parcel);
}

}  // namespace cmt::collector
