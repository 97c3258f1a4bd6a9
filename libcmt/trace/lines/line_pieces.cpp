// A text is read by several threads:
//
//     malloc(8) = 55d0c1e2b2a0<1>     a piece of 32 KiB, some 1,300 lines, which any thread can parse
//     free(55d0c1e2b2a0<1>)
//     ...
//
//     malloc(32) = 55d0c1e2b2c0<9>    the next piece, which another thread parses at the same time
//
// One thread at a time reads and cuts the input, which takes little: 5 ns a line. Parsing takes 10 ns a line and does
// not depend on the lines before. The owner does all work that does: names of stacks, the header, wrong lines, the live
// blocks. It gets the pieces in their order, so that the result is the same as with one thread, to the byte.
//
// Each thread that has nothing else to do reads and parses the next piece. The owner does so, too, if the piece that it
// wants is not ready. So it never waits for a thread that has no processor, unless that thread works at this very
// piece. Helpers sleep while all slots are full. They are woken when half of the slots are free, since waking a thread
// costs as much as parsing 100 lines.
//
// Memory: 0.2 MB for each of at most 18 pieces.

#include "libcmt/trace/lines/line_pieces.h"

#include <algorithm>
#include <cassert>
#include <system_error>

#include "libcmt/text/parser.h"

namespace cmt {
namespace {

constexpr std::size_t piece_bytes = 32 * 1024;

/// Counts the LFs. std::count has a 64-bit sum, so that few bytes fit into a vector register. The sum of a part of 128
/// bytes fits into one byte.
std::uint64_t count_lines(std::string_view text) {
  constexpr std::size_t part = 128;
  std::uint64_t lines = 0;
  for (; text.size() >= part; text.remove_prefix(part)) {
    std::uint8_t ends = 0;
    for (std::size_t i = 0; i < part; ++i) ends = static_cast<std::uint8_t>(ends + (text[i] == '\n' ? 1 : 0));
    lines += ends;
  }
  return lines + static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

/// The input owns the window, which moves with the next piece. So a piece has a copy of its own.
void keep(LinePiece& piece, std::string_view window, std::size_t lines_size, std::size_t last_size) {
  assert(lines_size + last_size <= window.size());
  piece.memory.assign(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(lines_size + last_size));
  const std::string_view copy(piece.memory.data(), piece.memory.size());
  piece.text = copy.substr(0, lines_size);
  piece.last = copy.substr(lines_size);
}

}  // namespace

LinePieces::~LinePieces() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  room_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void LinePieces::start_helpers() {
  const unsigned wanted = std::min(threads_ == 0 ? 0 : threads_ - 1, helpers_max);
  slots_ = std::vector<Slot>(wanted == 0 ? 1 : 2 * wanted + 4);
  try {
    while (helpers_.size() < wanted) helpers_.emplace_back([this] { run_helper(); });
  } catch (const std::system_error&) {
    // The helpers that have started do the work, or the owner if there are none.
  }
}

LinePiece& LinePieces::next() {
  if (slots_.empty()) start_helpers();
  std::unique_lock lock(mutex_);
  if (taken_ != released_) slots_[released_++ % slots_.size()].is_ready = false;
  assert(taken_ == released_);
  const Slot& slot = slots_[taken_ % slots_.size()];
  if (asleep_ != 0 && may_read() && (read_ - released_) * 2 <= slots_.size()) room_.notify_one();
  while (!slot.is_ready) {
    if (may_read()) {
      make_piece(lock);
    } else {
      ready_.wait(lock);
    }
  }
  return slots_[taken_++ % slots_.size()].piece;
}

void LinePieces::run_helper() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    if (may_read()) {
      make_piece(lock);
      continue;
    }
    ++asleep_;
    room_.wait(lock);
    --asleep_;
  }
}

/// Reads and parses the next piece.
void LinePieces::make_piece(std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[read_++ % slots_.size()];
  assert(!slot.is_ready && !is_reading_);
  is_reading_ = true;
  lock.unlock();
  read_piece(slot.piece);
  const bool is_last = slot.piece.end != LinePiece::End::none;
  lock.lock();
  is_reading_ = false;
  is_at_end_ = is_last;
  if (asleep_ != 0 && may_read()) room_.notify_one();
  lock.unlock();
  parse_piece(slot.piece);
  lock.lock();
  slot.is_ready = true;
  ready_.notify_one();
}

void LinePieces::read_piece(LinePiece& piece) {
  piece.text = piece.last = {};
  piece.end = LinePiece::End::none;
  piece.error = nullptr;
  piece.first_line = lines_;
  try {
    read_lines(piece);
    piece.bytes_taken = input_.file_taken();
  } catch (...) {
    piece.end = LinePiece::End::error;
    piece.error = std::current_exception();
  }
  assert(piece.text.empty() || piece.text.back() == '\n');
  piece.line_count = count_lines(piece.text);
  lines_ += piece.line_count;
}

/// Reads as many whole lines as a piece holds, one if that is longer, or up to the end.
void LinePieces::read_lines(LinePiece& piece) {
  for (std::size_t wanted = piece_bytes;; wanted += piece_bytes) {
    const std::string_view window = input_.peek(wanted).substr(0, wanted);
    const std::size_t size = window.rfind('\n') + 1;
    const std::size_t rest = window.size() - size;
    const bool is_last = window.size() < wanted || (size == 0 && window.size() >= text::line_limit);
    if (rest != 0 && window[size] == '\0' && is_last) {
      piece.end = LinePiece::End::nuls;
      return keep(piece, window, size, 0);
    }
    if (window.size() < wanted) {
      piece.end = LinePiece::End::input;
      return keep(piece, window, size, rest);
    }
    if (size != 0) {
      keep(piece, window, size, 0);
      return input_.skip(size);
    }
    if (window.size() >= text::line_limit) {
      piece.end = LinePiece::End::too_long;
      return;
    }
  }
}

void LinePieces::parse_piece(LinePiece& piece) const {
  piece.events.clear();
  piece.lines.clear();
  piece.line_numbers.clear();
  piece.others.clear();
  piece.lines_are_plain = true;
  if (parse_ == nullptr) return;
  try {
    parse_(piece);
    assert(piece.lines.size() == piece.events.size() && piece.line_numbers.size() == piece.events.size());
  } catch (...) {
    piece.end = LinePiece::End::error;
    piece.error = std::current_exception();
  }
}

}  // namespace cmt
