/// Up to 256 events on their way to a sink, most in a short form of 40 bytes, for the recorder's and the converter's
/// speed.
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

/// An event that is consistent with those before it, and the live block that it was given; tag 0 if none is known.
struct BookedEvent {
  Event event;
  format::LiveBlock old;
};

/// Up to 256 events in order, most of them in the short form. The other events are in a list of their own: each entry
/// of the short list with the tag 0 means the next one of them. A batch of a recording with call stacks also has a
/// column of stacks.
class EventBatch {
 public:
  static constexpr std::size_t capacity = 256;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The events in short form, and the others.
  std::span<const BlockEvent> events() const { return {events_.data(), size_}; }
  std::span<const BookedEvent> others() const { return {others_.data(), other_count_}; }

  /// The unused entries after the last one. The caller fills some in and then appends so many.
  std::span<BlockEvent> room() { return {events_.data() + size_, capacity - size_}; }
  void append(std::size_t count) {
    assert(count <= capacity - size_);
    size_ += count;
  }
  /// The same for an event that is not in short form.
  BookedEvent& next_other() {
    if (other_count_ == others_.size()) others_.emplace_back();
    return others_[other_count_];
  }
  void append_next_other() {
    assert(size_ < capacity && other_count_ < others_.size());
    const Event& event = others_[other_count_++].event;
    if (has_stacks_ || event.stack != 0) stack_room()[0] = event.stack;
    events_[size_++] = {.time_ns = event.time_ns};
  }

  /// The stacks of all entries of the list; empty if no event has one.
  std::span<const StackId> stacks() const { return {stacks_.data(), has_stacks_ ? size_ : 0}; }
  /// The stacks of the entries of room(). After the first call, the caller fills one in for each entry of room() that
  /// it appends, until clear(). An event without a stack has 0.
  std::span<StackId> stack_room() {
    if (!has_stacks_) begin_stacks();
    return {stacks_.data() + size_, capacity - size_};
  }

  void clear() {
    size_ = other_count_ = 0;
    has_times_ = true;
    has_stacks_ = false;
  }
  /// Whether the events may have times. If not, the times in the entries mean nothing.
  bool has_times() const { return has_times_; }
  void forget_times() { has_times_ = false; }
  /// Copies another batch. Its labels are views of memory that may not live as long, so the copy must not use them.
  void assign(const EventBatch& batch) {
    size_ = batch.size_;
    other_count_ = batch.other_count_;
    has_times_ = batch.has_times_;
    has_stacks_ = batch.has_stacks_;
    if (has_stacks_) stacks_ = batch.stacks_;
    std::copy_n(batch.events_.begin(), size_, events_.begin());
    if (others_.size() < other_count_) others_.resize(other_count_);
    std::copy_n(batch.others_.begin(), other_count_, others_.begin());
  }
  /// Removes the events after the first `count`.
  void truncate(std::size_t count) {
    for (; size_ > count; --size_) other_count_ -= events_[size_ - 1].tag == 0 ? 1 : 0;
    assert(other_count_ <= size_);
  }

  /// Replaces each event's time by convert(time).
  template <class Convert>
  void convert_times(const Convert& convert) {
    BookedEvent* other = others_.data();
    for (BlockEvent& event : std::span(events_.data(), size_)) {
      event.time_ns = convert(event.time_ns);
      if (event.tag == 0) other++->event.time_ns = event.time_ns;
    }
    assert(other == others_.data() + other_count_);
  }

  /// Calls visit(booked) for each event.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const BookedEvent* other = others_.data();
    for (std::size_t i = 0; i < size_; ++i) {
      const BlockEvent& event = events_[i];
      BookedEvent booked = event.tag == 0 ? *other++ : BookedEvent{event.event(), event.old()};
      if (!has_times_) booked.event.time_ns = unknown;
      if (has_stacks_) booked.event.stack = stacks_[i];
      visit(booked);
    }
    assert(other == others_.data() + other_count_);
  }

 private:
  void begin_stacks() {
    has_stacks_ = true;
    stacks_.resize(capacity);
    std::fill_n(stacks_.begin(), size_, StackId{0});
  }

  std::array<BlockEvent, capacity> events_;
  std::vector<BookedEvent> others_;
  std::vector<StackId> stacks_;  // by entry of events_, if has_stacks_
  std::size_t size_ = 0, other_count_ = 0;
  bool has_times_ = true, has_stacks_ = false;
};

}  // namespace cmt
