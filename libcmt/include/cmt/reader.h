#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cmt/error.h"
#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt {

/// Something in the input that was left out, altered, or is missing; reading goes on.
struct Defect {
  std::string place;  ///< "app.trace:12", "app.cmt: offset 0x1f3"
  std::string what;
};

struct ReadOptions {
  /// A defect is a FormatError instead.
  bool strict = false;
  /// Without addresses a .cmt reads faster: their stream is not decompressed.
  bool addresses = true;
  bool times = true;
  bool usable = true;
  /// Called for every defect, in order. Empty: they are only counted.
  std::function<void(const Defect&)> on_defect{};
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

  /// The input's own line for the i-th event of the last read(), without its end and its annotation; empty for .cmt.
  std::string_view line(std::size_t i) const;

  /// Defects so far.
  std::uint64_t defects() const;

  /// Defects so far, and those that the input states of itself. Whole at the end.
  std::uint64_t repairs() const;

  /// Whether the input, or the recording that it holds, broke off before its end. Known at the end.
  bool truncated() const;

  /// The totals that a whole .cmt states: before the first event where the input can seek, else at its end.
  const std::optional<Totals>& totals() const;

  /// Bytes read so far, and the input's size where it is known (0: it is not), for a progress display.
  std::uint64_t bytes_read() const;
  std::uint64_t bytes_total() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cmt
