// Fills batches from a reader, in one step for texts and in two for a .cmt.

#include "toolkit/trace/trace_batch.h"

#include <cassert>

namespace cmt::trace {

bool BatchReader::begin(TraceBatch& batch) {
  assert(batch_ == nullptr);
  if (!in_steps_) batch.events.clear();
  batch.lines.clear();
  batch.line_numbers.clear();
  batch.defects.clear();
  batch.first_defects.clear();
  batch.error = nullptr;
  batch_ = &batch;
  bool more = false;
  try {
    more = in_steps_ ? read_core(batch) : read_into(batch);
  } catch (...) {
    batch.error = std::current_exception();
  }
  batch_ = nullptr;
  batch.bytes_read = reader_.bytes_read();
  batch.bytes_total = reader_.bytes_total();
  return more;
}

/// Into the memory that the batch has: a copy to it cost 11 ns an event, where decoding addresses too costs some 28.
bool BatchReader::read_core(TraceBatch& batch) {
  Reader::Impl& reader = reader_.impl();
  batch.events.resize(TraceBatch::events_wanted);
  reader.read_core(batch.step, batch.events);
  batch.first_event = reader.first_;
  return batch.step.block != nullptr;
}

/// An error of this step replaces one of the first step, which is after the events.
bool BatchReader::complete(TraceBatch& batch) {
  if (!in_steps_) return batch.error == nullptr;
  try {
    if (batch.step.block != nullptr || !batch.error) reader_.impl().source_->complete(batch.step, batch.events);
  } catch (...) {
    batch.error = std::current_exception();
  }
  assert(batch.step.count <= TraceBatch::events_wanted);
  batch.events.resize(batch.step.count);
  return batch.error == nullptr;
}

/// The events of a text stay where the parser put them. The events of a legacy .cmt have no labels, and are copied.
bool BatchReader::read_into(TraceBatch& batch) {
  while (batch.events.size() < TraceBatch::events_wanted) {
    const std::span<const Event> events = reader_.read();
    if (events.empty()) return false;
    if (batch.events.empty()) batch.first_event = reader_.first_event();
    if (reader_.impl().source_->exchange(batch)) return true;
    batch.events.insert(batch.events.end(), events.begin(), events.end());
  }
  return true;
}

}  // namespace cmt::trace
