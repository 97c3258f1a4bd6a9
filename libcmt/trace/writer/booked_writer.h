/// A writer for conversions: it takes the live blocks from the source of the events instead of keeping a table itself.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "cmt/writer.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"
#include "libcmt/trace/writer/event_batch.h"
#include "libcmt/trace/writer/ledger.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {

/// Writes the events of a source that knows the live blocks. The bytes are those that a Writer writes.
///
/// A Writer keeps a table of live blocks, which takes a third of the time of a conversion. It needs the table to refuse
/// contradictions, to know the block that an event was given, and for keyframes. Here the source has such a table.
class BookedWriter : private LiveBlockSource {
 public:
  /// Borrows `fd` and the source, which has read no more than its header needed.
  BookedWriter(int fd, Header header, const WriteOptions& options, const Source& source);

  /// Writes the events of the source's last read(), all of them.
  void add(std::span<const Event> events);

  /// As with Writer.
  void use_stacks(const StackTable& stacks) { sink_->use_stacks(stacks); }
  void finish(const Repairs& repairs, bool truncated, std::vector<RunStretch> stretches = {},
              std::uint64_t samples_lost = 0);
  const Totals& totals() const { return tally_.totals(); }

 private:
  void fill_batch();
  void append(const Event& event, const LiveBlock& given);
  std::size_t live_blocks() const override { return tally_.totals().end_live_blocks; }
  std::vector<LiveBlock> list_live_blocks() const override;

  const Source& source_;
  Output output_;
  std::unique_ptr<Sink> sink_;
  Tally tally_;
  EventBatch batch_;
  bool has_times_ = false;  // some events of the batch have a time

  std::span<const Event> events_;  // of the source's last read()
  std::span<const LiveBlock> given_;
  std::size_t added_ = 0;  // how many of events_ are in a batch
  Tag newest_ = 0;         // of the blocks made so far
};

}  // namespace cmt
