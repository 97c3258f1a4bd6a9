#include "toolkit/annotate/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cmt::annotate {
namespace {

/// Both threads wait by the clock: one that is woken by the other is mostly put on the other's processor, and then they
/// take turns. In this time some 1,000 events are read.
void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

ReadAhead::ReadAhead(Reader& reader) : reader_(reader), thread_([this] { read_all(); }) {}

ReadAhead::~ReadAhead() {
  stops_ = true;
  thread_.join();
}

std::span<const Event> ReadAhead::read() {
  if (taken_ != 0 && batch_of(taken_).events.empty()) return {};
  released_ = taken_++;
  while (filled_ < taken_) wait_a_moment();
  const Batch& batch = batch_of(taken_);
  if (batch.events.empty() && error_) std::rethrow_exception(error_);
  return batch.events;
}

void ReadAhead::read_all() {
  for (bool more = true; more && !stops_;) {
    wait_for_room();
    Batch& batch = batches_[(filled_ + 1) % batch_count];
    batch.events.clear();
    batch.labels.clear();
    try {
      more = fill(batch);
    } catch (...) {
      error_ = std::current_exception();
      if (!batch.events.empty()) {
        filled_ += 1;
        wait_for_room();
        batches_[(filled_ + 1) % batch_count].events.clear();
      }
      more = false;
    }
    filled_ += 1;
  }
}

/// Returns false, and leaves the batch empty, at the end of the trace.
bool ReadAhead::fill(Batch& batch) {
  while (batch.events.size() < batch_events) {
    if (left_.empty()) {
      left_ = reader_.read();
      next_event_ = reader_.first_event();
    }
    if (left_.empty()) break;
    if (batch.events.empty()) batch.first_event = next_event_;
    const auto events = left_.first(std::min(left_.size(), batch_events - batch.events.size()));
    left_ = left_.subspan(events.size());
    next_event_ += events.size();
    batch.events.insert(batch.events.end(), events.begin(), events.end());
    for (Event& event : std::span(batch.events).last(events.size())) {
      if (!event.label.empty()) event.label = batch.labels.emplace_back(event.label);
    }
  }
  batch.bytes_read = reader_.bytes_read();
  batch.bytes_total = reader_.bytes_total();
  return !batch.events.empty();
}

/// The batch in use is not released: so there is room while fewer than all but one are filled.
void ReadAhead::wait_for_room() {
  while (!stops_ && filled_ - released_ >= batch_count - 1) wait_a_moment();
}

}  // namespace cmt::annotate
