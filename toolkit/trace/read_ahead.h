/// A trace that is read on a thread of its own, while another thread works on its events.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <thread>

#include "cmt/reader.h"
#include "toolkit/trace/trace_batch.h"

namespace cmt::trace {

/// Reads a trace in a thread of its own, some 8,000 events ahead of the one thread that asks for them. The reading
/// thread calls ReadOptions::on_defect.
class ReadAhead {
 public:
  /// Borrows the reader of `batches`. Until the last event is read, or this has ended, nobody else may use it, but for
  /// its header().
  explicit ReadAhead(BatchReader& batches);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next batch, valid until the next call, or null after the last one. The batch contains an error of reading.
  const TraceBatch* next();

  /// The next events, in recorded order, valid until the next call. Empty at the end. Throws an error of reading after
  /// the events before it.
  std::span<const Event> read();

  /// The batch that was returned last, or whose events were.
  const TraceBatch& batch() const { return batches_[taken_ % batch_count]; }

 private:
  static constexpr std::size_t batch_count = 8;

  void read_all();
  void wait_for_room();

  BatchReader& reader_;
  std::array<TraceBatch, batch_count> batches_;
  std::uint64_t taken_ = 0;                             ///< the number of the batch that is in use, from 1 on
  std::atomic<std::uint64_t> filled_ = 0;               ///< batches
  std::atomic<std::uint64_t> released_ = 0;             ///< batches
  std::atomic<std::uint64_t> end_ = ~std::uint64_t{0};  ///< the number of the last batch, once it is filled
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace cmt::trace
