/// The interface between writers and the two forms that they write, .cmt and text.
#pragma once

#include <memory>
#include <vector>

#include "cmt/header.h"
#include "cmt/stacks.h"
#include "cmt/writer.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/writer/event_batch.h"

namespace cmt {

/// Knows the live blocks while a trace is written. A sink needs them for the table of a keyframe, and to forget blocks
/// that have ended.
class LiveBlockSource {
 public:
  virtual ~LiveBlockSource() = default;
  virtual std::size_t live_blocks() const = 0;
  /// The live blocks that were made in this trace, by rising tag.
  virtual std::vector<format::LiveBlock> list_live_blocks() const = 0;
};

/// Writes one form of trace.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Adds an event. The LiveBlockSource has the live blocks after this event.
  virtual void add_event(const BookedEvent& booked) = 0;
  /// Adds at most room() events. The LiveBlockSource has the live blocks after the last of them.
  virtual void add_batch(const EventBatch& batch) {
    batch.for_each([this](const BookedEvent& booked) { add_event(booked); });
  }
  /// How many events the next batch may have; at least 1.
  virtual std::size_t room() const = 0;
  /// Writes the events so far to the file, so that they can be read before the end.
  virtual void flush() = 0;
  virtual void finish(const Totals& totals) = 0;
  /// Moves a part of the work to a thread of the sink, or back from it. If the system has no thread for the sink,
  /// nothing changes. The bytes are the same.
  virtual void use_thread(bool /*wanted*/) {}
  /// The events' stacks are numbers of this table, as with Writer::use_stacks(). The sink reads it only within its
  /// calls.
  virtual void use_stacks(const StackTable& /*stacks*/) {}
  /// The number that a stack of that table has in the file; 0 if the file does not have it, or not yet.
  virtual StackId stack_in_file(StackId /*stack*/) const { return 0; }
};

/// Borrows both `output` and `live`.
std::unique_ptr<Sink> make_sink(Output& output, Header header, const WriteOptions& options,
                                const LiveBlockSource& live);

}  // namespace cmt
