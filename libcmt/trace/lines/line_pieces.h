/// Cuts a text into pieces of whole lines and parses them ahead on several threads. The method is in line_pieces.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cmt/event.h"
#include "libcmt/trace/files.h"

namespace cmt {

/// Some whole lines of an input, and the events that the parser found in them.
struct LinePiece {
  /// A line that the parser leaves to the owner.
  struct Other {
    std::size_t index = 0;  ///< the line is before this event of the piece
    std::uint64_t number = 0;
    std::string_view line;
  };
  /// The reason why no further piece follows, if there is one.
  enum class End {
    none,      ///< the next piece follows
    input,     ///< the input is at its end
    nuls,      ///< a line of bytes of 0 without an end follows, as a killed recorder leaves it
    too_long,  ///< a line that is longer than the limit follows
    error,     ///< `error` was thrown
  };

  std::string_view text;         ///< whole lines
  std::uint64_t first_line = 0;  ///< the number of the first line less 1
  std::uint64_t line_count = 0;
  std::string_view last;  ///< at the input's end: the bytes after the last LF
  End end = End::none;
  std::exception_ptr error{};
  std::uint64_t bytes_taken = 0;  ///< of the file, up to here

  // The results of the parser. Each event has its line, as an annotator echoes it, and the line's number.
  std::vector<Event> events;
  std::vector<std::string_view> lines;
  std::vector<std::uint64_t> line_numbers;
  std::vector<Other> others;
  bool lines_are_plain = true;  ///< text::is_plain() is true for each of `lines`

  std::vector<char> memory{};  ///< of `text` and `last`; the input's window moves on
};

/// Cuts an input into pieces of whole lines and parses them, with several threads ahead of the owner. The pieces are
/// the same for any number of threads.
class LinePieces {
 public:
  /// Fills in `events` and `others` of a piece from its text. Several threads call it at once, for different pieces, so
  /// it must not use shared state.
  using Parse = void (*)(LinePiece& piece);

  /// Borrows the input. Nobody else may use it from the first next() to the last piece. `parse` may be null.
  LinePieces(Input& input, unsigned threads, Parse parse) : input_(input), threads_(threads), parse_(parse) {}
  ~LinePieces();
  LinePieces(const LinePieces&) = delete;
  LinePieces& operator=(const LinePieces&) = delete;

  /// The next piece, valid until the next call. Not to be called after a piece that has an end.
  LinePiece& next();

 private:
  static constexpr unsigned helpers_max = 7;

  struct Slot {
    LinePiece piece;
    bool is_ready = false;
  };

  void start_helpers();
  void run_helper();
  bool may_read() const { return !is_reading_ && !is_at_end_ && read_ - released_ < slots_.size(); }
  void make_piece(std::unique_lock<std::mutex>& lock);
  void read_piece(LinePiece& piece);
  void read_lines(LinePiece& piece);
  void parse_piece(LinePiece& piece) const;

  Input& input_;
  const unsigned threads_;
  const Parse parse_;
  std::vector<Slot> slots_;
  std::uint64_t lines_ = 0;  // in the pieces read so far; only the thread that reads uses it

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable room_, ready_;
  std::uint64_t read_ = 0, taken_ = 0, released_ = 0;  // pieces
  unsigned asleep_ = 0;                                // helpers
  bool is_reading_ = false, is_at_end_ = false, stops_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace cmt
