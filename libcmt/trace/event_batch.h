#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/block_event.h"
#include "libcmt/format/live_blocks.h"

namespace cmt {

using format::BlockEvent;

/// An event that is consistent with those before it, and the live block that it was given: tag 0 where none is known.
struct BookedEvent {
  Event event;
  format::LiveBlock old;
};

/// Up to 256 events in order, most of them in the short form. The others stand beside the list: an entry of the list
/// with the tag 0 stands for the next one of them.
class EventBatch {
 public:
  static constexpr std::size_t capacity = 256;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The list, and the others.
  std::span<const BlockEvent> events() const { return {events_.data(), size_}; }
  std::span<const BookedEvent> others() const { return {others_.data(), other_count_}; }

  /// The entries behind the last one, for the caller to fill in, and then to append so many.
  std::span<BlockEvent> room() { return {events_.data() + size_, capacity - size_}; }
  void append(std::size_t count) { size_ += count; }
  /// The same for another event.
  BookedEvent& next_other() {
    if (other_count_ == others_.size()) others_.emplace_back();
    return others_[other_count_];
  }
  void append_next_other() { events_[size_++] = {.time_ns = others_[other_count_++].event.time_ns}; }

  void clear() {
    size_ = other_count_ = 0;
    has_times_ = true;
  }
  /// Whether the events' times may be known; if not, what stands in their place means nothing.
  bool has_times() const { return has_times_; }
  void forget_times() { has_times_ = false; }
  /// Copies another batch, without its labels, which do not live as long.
  void assign(const EventBatch& batch) {
    size_ = batch.size_;
    other_count_ = batch.other_count_;
    has_times_ = batch.has_times_;
    std::copy_n(batch.events_.begin(), size_, events_.begin());
    if (others_.size() < other_count_) others_.resize(other_count_);
    std::copy_n(batch.others_.begin(), other_count_, others_.begin());
  }
  /// Removes the events behind the first so many.
  void truncate(std::size_t count) {
    for (; size_ > count; --size_) other_count_ -= events_[size_ - 1].tag == 0 ? 1 : 0;
  }

  /// Replaces each event's time by convert(time).
  template <class Convert>
  void convert_times(const Convert& convert) {
    BookedEvent* other = others_.data();
    for (BlockEvent& event : std::span(events_.data(), size_)) {
      event.time_ns = convert(event.time_ns);
      if (event.tag == 0) other++->event.time_ns = event.time_ns;
    }
  }

  /// Calls visit(booked) for each event.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const BookedEvent* other = others_.data();
    for (const BlockEvent& event : events()) {
      BookedEvent booked = event.tag == 0 ? *other++ : BookedEvent{event.event(), event.old()};
      if (!has_times_) booked.event.time_ns = unknown;
      visit(booked);
    }
  }

 private:
  std::array<BlockEvent, capacity> events_;
  std::vector<BookedEvent> others_;
  std::size_t size_ = 0, other_count_ = 0;
  bool has_times_ = true;
};

}  // namespace cmt
