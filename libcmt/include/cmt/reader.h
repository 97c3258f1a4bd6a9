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

namespace cmt {

/// Something in the input that was left out, altered, or is missing; reading goes on.
struct Defect {
  std::string place;  ///< "app.trace:12", "app.cmt: offset 0x1f3"
  std::string what;
  Repair repair = Repair::not_understood;
};

struct ReadOptions {
  /// A defect is a FormatError instead.
  bool strict = false;
  /// Without addresses a .cmt reads faster: their stream is not decompressed.
  bool addresses = true;
  bool times = true;
  bool usable = true;
  /// Above 1, the blocks of a .cmt are read and decompressed ahead, as many at once as threads; the order of events,
  /// and of what is wrong in them, stays the same. Costs some MB a thread.
  unsigned threads = 1;
  /// Called for every defect, in order. Empty: they are only counted.
  std::function<void(const Defect&)> on_defect{};
};

/// Where a .cmt can be entered: a block of its stream.
struct BlockStart {
  std::uint64_t first_event = 0;  ///< counted from 0
  Tag next_tag = 0;               ///< that the block's first allocation gets, if it skips none
  std::uint64_t time_ns = 0;      ///< of the last event before that has one; 0: none has
  std::uint64_t offset = 0;       ///< in the file, in bytes
  bool keyframe = false;          ///< addresses can be decoded from here on
};

/// Reads a trace from a file or a pipe: text, .cmt or legacy .cmt, told apart by content.
///
///     cmt::Reader reader("app.cmt");
///     for (auto events = reader.read(); !events.empty(); events = reader.read())
///       for (const cmt::Event& event : events) …
///
/// Not thread safe; readers of one file do not disturb each other. Throws FormatError for what is not a trace, and
/// std::system_error.
class Reader {
 public:
  /// `path` "-" is standard input. The header is read at once.
  explicit Reader(const std::string& path, ReadOptions options = {});
  /// Takes over `fd`; `path` is used in messages.
  Reader(int fd, const std::string& path, ReadOptions options = {});
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const Header& header() const;

  /// The next events, in recorded order; empty at the end. Valid until the next call.
  std::span<const Event> read();

  /// The number in the trace, from 0, of the first event of the last read().
  std::uint64_t first_event() const;

  /// Where the i-th event of the last read() stands, for a message: "app.trace:12", or "app.cmt: event 1234", where the
  /// first is 1.
  std::string place(std::size_t i) const;

  /// The blocks of a whole .cmt that can seek, from its index; empty for all else.
  const std::vector<BlockStart>& blocks();

  /// The next read() begins with the event of this number, counted from 0, or is empty where there are not so many.
  /// Where blocks() has any, only what is needed is read: the event's block or, where addresses are wanted, from the
  /// keyframe before it. Elsewhere the events before it are read and dropped, and to go back throws FormatError.
  void seek(std::uint64_t event);

  /// The input's own line for the i-th event of the last read(), without its end and its annotation; empty for .cmt.
  std::string_view line(std::size_t i) const;

  /// Defects so far.
  std::uint64_t defects() const;

  /// Defects so far, and those that the input states of itself, by kind. Whole at the end.
  Repairs repairs() const;

  /// Whether the input, or the recording that it holds, broke off before its end. Known at the end.
  bool truncated() const;

  /// The totals that a whole .cmt states: before the first event where the input can seek, else at its end.
  const std::optional<Totals>& totals() const;

  /// Bytes read so far, and the input's size where it is known (0: it is not), for a progress display.
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_total() const;

  /// The library's own: a reader of another form or of another source of bytes.
  class Impl;
  explicit Reader(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Visits all events of a trace on `threads` threads, for what can be counted in parts and added up. A part is what
/// decodes alone: a block of the stream or, where addresses are wanted, the blocks from a keyframe to the next. Parts
/// are numbered in the trace's order. Each is visited by one thread, its events in order; different parts at once, in
/// no order. What has no index (text, a pipe, a file that was cut off) is one part.
///
/// Returns the number of parts. What `visit` or reading throws first, by the order of parts, is thrown here.
std::size_t for_each_part(const std::string& path, const ReadOptions& options, unsigned threads,
                          const std::function<void(std::size_t part, std::span<const Event> events)>& visit);

}  // namespace cmt
