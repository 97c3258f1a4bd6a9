#include "preload/collector/ring_events.h"

#include <algorithm>

namespace cmt::collector {

void Stream::append(Packed records) {
  if (records.count == 0) return;
  chunks_.push_back(std::move(records));
  if (chunks_.size() == 1) unpacker_ = Unpacker(chunks_.front());
  if (!has_front_) decode();
}

// Whether there is a next record.
bool Stream::refill() {
  unpacked_.resize(unpacked_max);
  Slot* to = std::copy(next_, end_, unpacked_.data());
  Slot* const limit = unpacked_.data() + unpacked_.size();
  while (to != limit && !chunks_.empty()) {
    for (auto left = std::min<std::ptrdiff_t>(limit - to, unpacker_.left()); left != 0; --left)
      *to++ = unpacker_.next();
    if (unpacker_.left() != 0) break;
    chunks_.pop_front();
    if (!chunks_.empty()) unpacker_ = Unpacker(chunks_.front());
  }
  next_ = unpacked_.data();
  end_ = to;
  refill_at_ = chunks_.empty() ? end_ : end_ - ahead;
  return next_ != end_;
}

void Stream::resume(const Saved& saved) {
  place_ = begin_ = saved.position;
  thread = saved.thread;
  epoch_ = epoch_before_ = std::uint64_t{saved.stamp_high} << 32;
}

void Stream::extend(const Slot& slot, std::uint32_t kind) {
  if (kind == record_stamp_high) {
    epoch_ = slot.body << 32;
    return;
  }
  // It may stand for the end of an event of which there is the begin.
  if (kind == record_void) return forget_extension();
  extended_ = true;
  if (kind == record_count) extension_.count = slot.body;
  if (kind == record_size) extension_.size = slot.body;
  if (kind == record_alignment) extension_.alignment = slot.body;
  if (kind == record_usable_size) extension_.usable = slot.body;
  if (kind != record_piece) return;
  char text[piece_bytes];
  label_.append(text, piece_of_slot(&slot, text));
}

Recorded Stream::front() const {
  Recorded event = extension_;
  event.stamp = last_stamp_;
  event.kind = kind();
  event.given = (slot_.head & slot_has_old_block) != 0;
  event.address = slot_.head >> slot_address_shift;
  if (event.size == 0) event.size = slot_.body >> 32;
  if (event.alignment == 0) event.alignment = alignment_of(slot_);
  return event;
}

void Stream::forget_extension() {
  extended_ = false;
  extension_ = Recorded{};
  label_.clear();
}

}  // namespace cmt::collector
