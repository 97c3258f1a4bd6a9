#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt {

struct WriteOptions {
  Format format = Format::cmt;  ///< cmt or text
  int level = 3;                ///< of zstd
  /// Events in a block of the stream, at most.
  std::uint32_t block_events = 256 * 1024;
  /// Above 1, a block of a .cmt is compressed on a thread of its own while the next fills; it is written when that is
  /// full. The bytes are the same.
  unsigned threads = 1;
};

/// Writes a trace as text or .cmt to a file or a pipe. A .cmt without finish() reads as truncated, and so does a text
/// with a header.
///
/// The events have to be consistent: tags rise, a block is ended once. What is not is refused by add().
/// Not thread safe. Throws std::system_error.
class Writer {
 public:
  /// Borrows `fd`.
  Writer(int fd, Header header, WriteOptions options = {});
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  /// Takes one event. False, and nothing written, if it makes a block whose tag is not above all before, or ends one
  /// that was made in this trace and is not alive, or has a label of more than 4,096 bytes.
  bool add(const Event& event);

  /// What was taken is on its way to the file, in a block that is whole, however small.
  void flush();

  /// Ends the trace. `repairs` and `truncated` go into its totals.
  void finish(const Repairs& repairs = {}, bool truncated = false);

  /// What was written so far.
  const Totals& totals() const;
  std::uint64_t bytes_written() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cmt
