/// Batches of events, which threads hand to each other instead of single events.
#pragma once

#include <cassert>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/trace/source.h"

namespace cmt::trace {

/// Events of a trace with their texts and defects, in memory of their own. One thread reads a batch while others work
/// on the batches before. So no two batches share a line of the cache, nor a pair that the processor fetches together.
struct alignas(128) TraceBatch : LineBatch {
  /// So many events of a .cmt are a batch, or some more: enough to be worth handing over, few enough for the second
  /// cache. A batch of a text is a piece of it (libcmt/trace/lines/line_pieces.h).
  static constexpr std::size_t events_wanted = 1024;

  /// A defect that was found when the events before this one had been handed out.
  struct ReadDefect {
    std::size_t before;
    Defect defect;
  };

  std::vector<ReadDefect> defects;                ///< the first, in order
  FirstDefects first_defects;                     ///< which of them are kept
  std::exception_ptr error;                       ///< the exception of reading after these events
  std::uint64_t first_event = 0;                  ///< its number in the trace, counted from 0
  std::uint64_t bytes_read = 0, bytes_total = 0;  ///< how far the trace was read after these events
  ReadStep step{};                                ///< of a trace that is read in two steps

  /// The line of an event; empty where it has none.
  std::string_view line(std::size_t i) const { return lines.empty() ? std::string_view() : lines[i]; }
};

/// Reads a trace into batches, from its begin. Borrows the reader, which nobody else may use meanwhile.
class BatchReader {
 public:
  explicit BatchReader(Reader& reader) : reader_(reader), in_steps_(reader.impl().source_->reads_in_steps()) {}

  /// Replaces the content of a batch by the next events. Returns false for the last batch, which may be empty. Stores
  /// an exception of reading in its `error`.
  bool fill(TraceBatch& batch) {
    const bool more = begin(batch);
    return complete(batch) && more;
  }

  /// The two steps of fill(). Two threads may do them, each for one batch after the other. complete() returns false if
  /// there is an error: then the batch is the last one.
  bool begin(TraceBatch& batch);
  bool complete(TraceBatch& batch);
  /// Whether complete() reads anything. It changes the table of stacks then, else begin() does.
  bool reads_in_steps() const { return in_steps_; }

  /// Adds a defect that the reader reports while begin() runs.
  void add(const Defect& defect) {
    assert(is_filling());
    if (const auto counted_by = batch_->first_defects.counted_by(defect.what)) {
      batch_->defects[*counted_by].defect.count += defect.count;
    } else {
      batch_->defects.push_back({batch_->events.size(), defect});
    }
  }
  bool is_filling() const { return batch_ != nullptr; }

 private:
  bool read_into(TraceBatch& batch);
  bool read_core(TraceBatch& batch);

  Reader& reader_;
  bool in_steps_;
  TraceBatch* batch_ = nullptr;  // the one that is being filled
};

}  // namespace cmt::trace
