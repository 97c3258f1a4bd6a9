/// Reads a trace of any form of the library, event by event, from its begin or from any event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/error.h"
#include "cmt/event.h"
#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt {

/// A fault of the input. The reader leaves it out or repairs it, and goes on.
struct Defect {
  std::string place;  ///< "app.trace:12", "app.cmt: offset 0x1f3"
  std::string what;
  Repair repair = Repair::not_understood;
  /// The defects that are counted here: this one, and others of its kind without a text of their own. Before the first
  /// event, the reader keeps the texts of the first ten and of the first of each kind.
  std::uint64_t count = 1;
};

struct ReadOptions {
  /// Throws a FormatError at the first defect.
  bool strict = false;
  /// These four choose the streams that are decoded. A .cmt is read faster without addresses.
  bool addresses = true;
  /// Decodes addresses if touched pages were recorded, although `addresses` is false. Only the address of a block shows
  /// where its first page begins.
  bool addresses_of_touched = false;
  bool times = true;
  bool usable = true;
  /// Without it, Event::stack is 0, and Reader::stacks() is empty.
  bool stacks = false;
  /// With more than 1, other threads decompress the next blocks of a .cmt, or parse the next lines of a text. Events
  /// and defects are the same, in the same order. Costs some MB a thread.
  unsigned threads = 1;
  /// The reader calls it for every defect, in order (see Defect::count). If it is empty, the reader only counts
  /// defects.
  std::function<void(const Defect&)> on_defect{};
};

/// A block of the stream, at which reading of a .cmt can begin.
struct BlockStart {
  std::uint64_t first_event = 0;  ///< counted from 0
  Tag next_tag = 0;               ///< of the block's first allocation, unless tags are skipped before it
  std::uint64_t time_ns = 0;      ///< of the last event before the block that has a time; 0: none has one
  std::uint64_t offset = 0;       ///< in the file, in bytes
  bool keyframe = false;          ///< addresses can be decoded from here on

  bool operator==(const BlockStart&) const = default;
};

/// Reads a trace from a file or a pipe: text, .cmt or legacy .cmt. The content decides which.
///
///     cmt::Reader reader("app.cmt");
///     for (auto events = reader.read(); !events.empty(); events = reader.read())
///       for (const cmt::Event& event : events) …
///
/// A reader is not thread safe; several readers of one file are independent. Throws FormatError for an input that is
/// not a trace, and std::system_error.
class Reader {
 public:
  /// Opens a path, "-" for standard input, and reads the header. If the traced program has ended and its collector is
  /// still writing, waits until the collector has finished the trace.
  explicit Reader(const std::string& path, ReadOptions options = {});
  /// Takes over `fd`; messages name it `path`.
  Reader(int fd, const std::string& path, ReadOptions options = {});
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const Header& header() const;

  /// Lets read() return the events of a sampled trace (Header::sampled()), which are those of a few blocks. Without
  /// this call, read() and seek() throw FormatError for such a trace, since a program that does not know of samples
  /// would take them for all blocks. To be called before these.
  void accept_samples();

  /// The next events, in recorded order; empty at the end. Valid until the next call.
  std::span<const Event> read();

  /// The number of the first event of the last read() in the trace, counted from 0.
  std::uint64_t first_event() const;

  /// The place of the i-th event of the last read(), for a message: "app.trace:12", or "app.cmt: event 1234", counted
  /// from 1.
  std::string place(std::size_t i) const;

  /// The blocks of the stream, from the index of a whole .cmt in a file that can seek; empty for any other input.
  const std::vector<BlockStart>& blocks();

  /// Makes the next read() begin with the event of this number, counted from 0. The next read() is empty if the trace
  /// has fewer. If blocks() is not empty, reading starts at the event's block or, if addresses are wanted, at the
  /// keyframe before it. Otherwise the reader reads and drops the events before, and a step back throws FormatError.
  void seek(std::uint64_t event);

  /// The line of the i-th event of the last read() as the input has it, without its end and its annotation; empty for a
  /// .cmt.
  std::string_view line(std::size_t i) const;

  /// The number of that line, counted from 1; 0 for a .cmt.
  std::uint64_t line_number(std::size_t i) const;

  /// The call stacks of all events read so far, and of the events that seek() has skipped. All readers of a file use
  /// the same numbers. Names of frames are known at once if the input can seek, else at its end.
  const StackTable& stacks() const;

  /// Puts all stacks of the trace into stacks() now and returns true, if blocks() is not empty. Otherwise does nothing
  /// and returns false. For readers of parts of a trace, which do not see all stacks.
  bool read_stacks();

  /// Number of defects so far.
  std::uint64_t defects() const;

  /// Defects so far, and the repairs that the input states about itself, by kind. Complete at the end.
  Repairs repairs() const;

  /// Whether the input, or the recording in it, broke off. Known at the end.
  bool truncated() const;

  /// The totals that a whole .cmt states. They are known at once if the input can seek, else at its end.
  const std::optional<Totals>& totals() const;

  /// The stretches of the recording. They are known at once if the input is a .cmt and can seek, else at its end.
  const std::vector<RunStretch>& stretches() const;

  /// Bytes read so far, and the size of the input (0: not known), for a progress display.
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_total() const;

  /// For the project's own tools: a reader of another form or of another source of bytes.
  class Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Visits all events of a trace on `threads` threads, for sums that can be counted in parts. A part is a block of the
/// stream or, if addresses are wanted, the blocks from a keyframe to the next. Parts are numbered in the trace's order.
/// One thread visits a part, with its events in order; different parts are visited at the same time, in no order. An
/// input without index (text, a pipe, a file that was cut off) is one part.
///
/// Refuses a sampled trace as Reader::read() does. Returns the number of parts. Throws the exception of the first part,
/// in their order, of which reading or `visit` threw.
std::size_t for_each_part(const std::string& path, const ReadOptions& options, unsigned threads,
                          const std::function<void(std::size_t part, std::span<const Event> events)>& visit);

}  // namespace cmt
