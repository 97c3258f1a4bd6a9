#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cmt/header.h"
#include "cmt/writer.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/trace/files.h"

namespace cmt {

/// An event that is consistent with those before it, and the live block that it was given: tag 0 where none is known.
struct BookedEvent {
  Event event;
  format::LiveBlock old;
};

/// Keeps the live blocks while a trace is written; a sink asks it for the table of a keyframe.
class BlockKeeper {
 public:
  virtual ~BlockKeeper() = default;
  virtual std::size_t live_blocks() const = 0;
  /// The live blocks that were made in this trace, by rising tag.
  virtual std::vector<format::LiveBlock> list_live_blocks() const = 0;
};

/// A writer of one form of trace.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Adds at most room() events. The keeper's blocks are those after the last of them.
  virtual void add(std::span<const BookedEvent> events) = 0;
  /// How many events the next add() may have; at least 1.
  virtual std::size_t room() const = 0;
  /// Writes the events so far to the file, so that they can be read before the end.
  virtual void flush() = 0;
  virtual void finish(const Totals& totals) = 0;
};

/// Borrows the output and the keeper.
std::unique_ptr<Sink> make_sink(Output& output, Header header, const WriteOptions& options, const BlockKeeper& keeper);

}  // namespace cmt
