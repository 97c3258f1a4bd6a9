#include "preload/collector/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

namespace cmt::collector {
namespace {

constexpr std::uint64_t parcel_bytes_max = std::uint64_t{ring_slots_big} * Packer::record_bytes_max;

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
  const std::uint64_t bytes = entry.parcel.records.bytes();
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
  Packed& records = entry.parcel.records;
  const std::uint64_t bytes = records.bytes();
  const auto place = place_in_file(bytes);
  if (file_failed_ || !place) return false;
  const auto written = ::pwrite(file_, records.words.get(), bytes, static_cast<off_t>(*place));
  file_failed_ = written != static_cast<ssize_t>(bytes);
  if (file_failed_) return false;
  if (in_file_ == 0) file_begin_ = *place;
  entry.offset = *place;
  entry.bytes = bytes;
  file_end_ = *place + bytes;
  records.words.reset();
  records.size = 0;
  return true;
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
  if (entry.bytes != 0) file_begin_ = entry.offset + entry.bytes;
  (entry.bytes != 0 ? in_file_ : in_memory_) -= bytes;
  return std::move(entry.parcel);
}

}  // namespace cmt::collector
