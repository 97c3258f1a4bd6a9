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

/// Some whole lines of an input, and what can be said of each of them alone.
struct LinePiece {
  /// A line that is for the owner to understand.
  struct Other {
    std::size_t index = 0;  ///< it stands before this event
    std::uint64_t number = 0;
    std::string_view line;
  };
  /// What follows the lines.
  enum class End {
    none,      ///< the next piece
    input,     ///< the input's end
    nuls,      ///< a line that begins with a byte of 0 and has no end, which a recorder that was killed leaves
    too_long,  ///< a line of more than the limit
    error,     ///< `error`
  };

  std::string_view text;         ///< whole lines
  std::uint64_t first_line = 0;  ///< the number of the first of them less 1
  std::uint64_t line_count = 0;
  std::string_view last;  ///< at the input's end: what stands behind the last LF
  End end = End::none;
  std::exception_ptr error{};
  std::uint64_t bytes_taken = 0;  ///< of the file, up to here

  // What the parser makes of the lines; of each event its line, as an annotator echoes it, and the number of that.
  std::vector<Event> events;
  std::vector<std::string_view> lines;
  std::vector<std::uint64_t> line_numbers;
  std::vector<Other> others;

  std::string copy{};  ///< the memory of `text` and `last`, if other threads read ahead
};

/// Cuts an input into pieces of whole lines, and parses these, with several threads ahead of their owner. The pieces
/// are the same for any number of threads. The essay is in line_pieces.cpp.
class LinePieces {
 public:
  /// Fills in events and others of a piece whose text is there. Any thread calls it, with different pieces at once, and
  /// it keeps nothing.
  using Parse = void (*)(LinePiece& piece);

  /// Borrows the input, which nobody else may use from the first next() to the last piece. `parse` may be null.
  LinePieces(Input& input, unsigned threads, Parse parse) : input_(input), threads_(threads), parse_(parse) {}
  ~LinePieces();
  LinePieces(const LinePieces&) = delete;
  LinePieces& operator=(const LinePieces&) = delete;

  /// The next piece, until the call after this; not to be called after the one that has an end.
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
  void keep(LinePiece& piece, std::string_view window, std::size_t lines_size, std::size_t last_size) const;

  Input& input_;
  const unsigned threads_;
  const Parse parse_;
  std::vector<Slot> slots_;
  std::uint64_t lines_ = 0;  // of the pieces read; of the thread that reads

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable room_, ready_;
  std::uint64_t read_ = 0, taken_ = 0, released_ = 0;  // pieces
  unsigned asleep_ = 0;                                // helpers
  bool is_reading_ = false, is_at_end_ = false, stops_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace cmt
