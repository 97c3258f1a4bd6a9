#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cmt/reader.h"

namespace cmt::annotate {

/// Reads a trace in a thread of its own, some 8,000 events ahead of the one thread that asks for them. What the reader
/// calls (ReadOptions::on_defect) is called by that thread.
class ReadAhead {
 public:
  /// Borrows `reader`. Until the last event is read, or this has ended, nobody else may use it, but for its header().
  explicit ReadAhead(Reader& reader);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next events, in recorded order; empty at the end. Valid until the next call. Throws what reading has thrown,
  /// once the events before are read.
  std::span<const Event> read();

  /// The number of the first event of the last read() in the trace, counted from 0.
  std::uint64_t first_event() const { return batch_of(taken_).first_event; }

  /// How far the trace was read when the last batch was made.
  std::uint64_t bytes_read() const { return batch_of(taken_).bytes_read; }
  std::uint64_t bytes_total() const { return batch_of(taken_).bytes_total; }

 private:
  static constexpr std::size_t batch_count = 8;
  static constexpr std::size_t batch_events = 1024;

  struct Batch {
    std::vector<Event> events;
    std::deque<std::string> labels;  ///< of these events
    std::uint64_t first_event = 0;
    std::uint64_t bytes_read = 0, bytes_total = 0;
  };

  void read_all();
  bool fill(Batch& batch);
  void wait_for_room();
  const Batch& batch_of(std::uint64_t number) const { return batches_[number % batch_count]; }

  Reader& reader_;
  std::span<const Event> left_;   ///< of the reader's last events, those that no batch has
  std::uint64_t next_event_ = 0;  ///< the number of the first of them
  std::array<Batch, batch_count> batches_;
  std::exception_ptr error_;
  std::uint64_t taken_ = 0;                  ///< the number of the batch that is in use, from 1 on
  std::atomic<std::uint64_t> filled_ = 0;    ///< batches, the last of which is empty
  std::atomic<std::uint64_t> released_ = 0;  ///< batches
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace cmt::annotate
