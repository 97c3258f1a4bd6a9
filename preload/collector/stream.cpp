#include "preload/collector/stream.h"

#include <cstring>

namespace cmt::collector {

void Stream::append(std::span<const Slot> records) {
  if (begin_ > records_.size() / 2) {
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(begin_));
    base_ += begin_;
    at_ -= begin_;
    begin_ = 0;
  }
  records_.insert(records_.end(), records.begin(), records.end());
  if (!has_front_) decode();
}

void Stream::resume(const Saved& saved) {
  base_ = saved.place;
  thread = saved.thread;
  epoch_ = epoch_before_ = std::uint64_t{saved.epoch} << 32;
}

void Stream::pop() {
  has_front_ = false;
  begin_ = at_;
  epoch_before_ = epoch_;
  front_ = Recorded{};
  if (!label_.empty()) label_.clear();
  decode();
}

// Takes records until the one that ends an event. Those before it are kept in front_ where they run out.
void Stream::decode() {
  while (at_ < records_.size()) {
    const Slot& slot = records_[at_++];
    const auto kind = static_cast<std::uint32_t>(slot.head & 63);
    if (kind < record_epoch) {
      complete(slot, kind);
      return;
    }
    extend(slot, kind);
  }
}

void Stream::extend(const Slot& slot, std::uint32_t kind) {
  if (kind == record_epoch) epoch_ = slot.body << 32;
  if (kind == record_count) front_.count = slot.body;
  if (kind == record_size) front_.size = slot.body;
  if (kind == record_alignment) front_.alignment = slot.body;
  if (kind == record_usable_size) front_.usable = slot.body;
  if (kind != record_piece) return;
  char text[14];
  std::memcpy(text, reinterpret_cast<const char*>(&slot.head) + 2, 6);
  std::memcpy(text + 6, &slot.body, 8);
  const std::size_t length = slot.head >> slot_alignment_shift & 63;
  label_.append(text, length < sizeof text ? length : sizeof text);
}

void Stream::complete(const Slot& slot, std::uint32_t kind) {
  std::uint64_t stamp = epoch_ | (slot.body & 0xffffffff);
  // A signal handler may have begun a new epoch between a thread's look at the clock and its record.
  constexpr std::uint64_t epoch = std::uint64_t{1} << 32;
  if (stamp - epoch - last_stamp_ + stamp_slack < 2 * stamp_slack) stamp -= epoch;
  front_.stamp = last_stamp_ = stamp > last_stamp_ ? stamp : last_stamp_;
  front_.kind = kind;
  front_.given = (slot.head & slot_given) != 0;
  front_.address = slot.head >> slot_address_shift;
  const std::uint64_t size = slot.body >> 32, log2 = slot.head >> slot_alignment_shift & 63;
  if (front_.size == 0) front_.size = size;
  if (front_.alignment == 0 && log2 != 0) front_.alignment = std::uint64_t{1} << (log2 - 1);
  has_front_ = true;
}

}  // namespace cmt::collector
