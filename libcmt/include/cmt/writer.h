/// Writes events as a .cmt or a text trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt {

struct WriteOptions {
  Format format = Format::cmt;  ///< cmt or text
  int level = 3;                ///< of zstd
  /// Events in a block of the stream, at most.
  std::uint32_t block_events = 256 * 1024;
  /// With more than 1, a second thread compresses full blocks of a .cmt, or formats the lines of a text. The bytes are
  /// the same.
  unsigned threads = 1;
};

/// Writes a trace as text or .cmt to a file or a pipe. Without finish(), readers report a .cmt, or a text with a
/// header, as truncated.
///
/// Events have to be consistent: tags rise, and a block is ended once. add() refuses other events. Not thread safe.
/// Throws std::system_error.
///
/// A header with the key `sampled` makes the .cmt one of version 2 (format-spec/cmt.md, "Sampled traces").
class Writer {
 public:
  /// Borrows `fd`. Throws FormatError if the key `sampled` is not a number above 0, or the format is text.
  Writer(int fd, Header header, WriteOptions options = {});
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  /// Writes an event. Returns false and writes nothing if the event's kind is unknown, its label has more than
  /// 4,096 bytes, or it names touched pages but no block. It does the same if the event
  ///
  /// - has a `tag` although its kind makes no block, or an `old_tag` although its kind is given none,
  /// - makes a block whose tag is not above all tags before,
  /// - is given a block of this trace that is not alive, or
  /// - is of a kind of sampled traces, and the header is not that of one, or the interval falls.
  bool add(const Event& event);

  /// From here on the events' stacks are numbers of this table. Without a table, events have no stacks. The Writer
  /// borrows the table until finish(), and the table may grow. The trace gets the modules, frames and nodes that its
  /// events use, with numbers of its own. finish() adds the names of these frames. After the first event with a stack,
  /// another table may follow only if all numbers mean the same in it.
  void use_stacks(const StackTable& stacks);

  /// Writes the events so far to the file, in a whole block of the stream, however small.
  void flush();

  /// Ends the trace. `repairs`, `truncated`, `stretches` and `samples_lost` become part of its totals.
  void finish(const Repairs& repairs = {}, bool truncated = false, std::vector<RunStretch> stretches = {},
              std::uint64_t samples_lost = 0);

  /// The totals of the events so far.
  const Totals& totals() const;
  std::uint64_t bytes_written() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cmt
