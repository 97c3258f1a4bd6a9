// Hands batches from the reading thread to the one that asks, through a ring of eight.

#include "toolkit/trace/read_ahead.h"

#include <cassert>
#include <chrono>
#include <thread>

namespace cmt::trace {
namespace {

/// About the time in which a batch is read.
void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace

ReadAhead::ReadAhead(BatchReader& batches) : reader_(batches), thread_([this] { read_all(); }) {}

ReadAhead::~ReadAhead() {
  stops_ = true;
  thread_.join();
}

const TraceBatch* ReadAhead::next() {
  assert(taken_ <= end_);
  if (taken_ == end_) return nullptr;
  released_ = taken_++;
  while (filled_ < taken_) wait_a_moment();
  return &batch();
}

std::span<const Event> ReadAhead::read() {
  while (const TraceBatch* const next_batch = next()) {
    if (!next_batch->events.empty()) return next_batch->events;
  }
  if (batch().error) std::rethrow_exception(batch().error);
  return {};
}

void ReadAhead::read_all() {
  for (bool more = true; more && !stops_;) {
    wait_for_room();
    assert(stops_ || filled_ - released_ < batch_count - 1);
    more = reader_.fill(batches_[(filled_ + 1) % batch_count]);
    if (!more) end_ = filled_ + 1;
    filled_ += 1;
  }
}

/// The batch in use is not released, so at most all others may be filled.
void ReadAhead::wait_for_room() {
  while (!stops_ && filled_ - released_ >= batch_count - 1) wait_a_moment();
}

}  // namespace cmt::trace
