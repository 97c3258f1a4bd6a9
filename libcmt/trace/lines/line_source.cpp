// Takes the pieces in order: events stay where the parser put them until the mender changes the trace, then are copied.

#include "libcmt/trace/lines/line_source.h"

#include <cassert>

#include "libcmt/format/live_blocks.h"
#include "libcmt/text/parser.h"
#include "libcmt/text/utf8.h"

namespace cmt {
namespace {

constexpr std::size_t content_start = 64;
constexpr std::uint64_t nonsense_limit = 100'000;  // lines without an event

}  // namespace

void LineSource::read_ahead() {
  start_ = input_->peek(content_start).substr(0, content_start);
  if (start_.starts_with(byte_order_mark)) input_->skip(byte_order_mark.size());
  log_.hold();
  fill();
  log_.release();
  ahead_ = true;
}

std::span<const Event> LineSource::read() {
  if (!ahead_) fill();
  ahead_ = false;
  assert(lines_.size() == batch_.size() && line_numbers_.size() == batch_.size() && given_.size() >= batch_.size());
  return batch_;
}

bool LineSource::exchange(LineBatch& batch) {
  batch.events.swap(batch_);
  batch.labels.swap(labels_);
  batch.lines.swap(lines_);
  batch.line_numbers.swap(line_numbers_);
  batch.text.swap(piece_->memory);
  batch.lines_are_plain = lines_are_plain_;
  return true;
}

/// An error is thrown when the events before it have been handed out.
void LineSource::fill() {
  if (error_) std::rethrow_exception(error_);
  try {
    read_batch();
  } catch (const FormatError&) {
    error_ = std::current_exception();
    if (batch_.empty()) throw;
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

void LineSource::read_batch() {
  batch_.clear();
  if (!is_parsed_) given_.clear();  // if lines are parsed, take_events() resizes it without writing
  lines_.clear();
  line_numbers_.clear();
  labels_.clear();
  lines_are_plain_ = true;
  while (batch_.empty() && !finished_) {
    if (log_.held_count() >= nonsense_limit) refuse_nonsense();
    LinePiece& piece = pieces_.next();
    if (piece.error) std::rethrow_exception(piece.error);
    bytes_taken_ = piece.bytes_taken;
    piece_ = &piece;
    take_piece(piece);
  }
}

void LineSource::take_piece(LinePiece& piece) {
  line_number_ = piece.first_line;
  if (is_parsed_) {
    take_events(piece);
  } else {
    take_lines(piece.text);
  }
  line_number_ = piece.first_line + piece.line_count;
  switch (piece.end) {
    case LinePiece::End::none:
    case LinePiece::End::error:
      return;
    case LinePiece::End::input:
      return take_end(piece.last);
    case LinePiece::End::nuls:
      // A recorder that was killed leaves NULs after its last line, in the space that it had reserved.
      truncated_ = true;
      return take_end({});
    case LinePiece::End::too_long:
      ++line_number_;
      throw FormatError(place(), "a line of more than 1 MiB: not a trace");
  }
}

/// Takes the events that were parsed of a piece. The batch is empty before.
void LineSource::take_events(LinePiece& piece) {
  assert(batch_.empty());
  batch_.swap(piece.events);
  lines_.swap(piece.lines);
  line_numbers_.swap(piece.line_numbers);
  lines_are_plain_ = piece.lines_are_plain;
  const std::size_t before_others = piece.others.empty() ? batch_.size() : piece.others.front().index;
  given_.resize(batch_.size());
  mended_ = 0;
  try {
    mend_in_place(before_others);
  } catch (...) {
    copy_events_from(mended_);
    throw;
  }
  if (mended_ == batch_.size() && piece.others.empty()) return;
  copy_events_from(mended_);
  take_copied_events(piece.others, mended_ < before_others);
}

/// Mends the first events of the batch, up to the first that needs a copy. The stack of this event is set.
void LineSource::mend_in_place(std::size_t count) {
  assert(count <= batch_.size() && given_.size() == batch_.size());
  while (mended_ < count) {
    Event& event = batch_[mended_];
    if (any_block_ && event.stack == 0) {
      const std::size_t more = mender_.mend_in_place(std::span(batch_).subspan(mended_, count - mended_),
                                                     std::span(given_).subspan(mended_));
      mended_ += more;
      if (more == 0) return;
      continue;
    }
    if (event.stack != 0) {
      line_number_ = line_numbers_[mended_];
      take_stack(event);
    }
    if (!any_block_) describe_first(event);
    if (mender_.mend_in_place({&event, 1}, {&given_[mended_], 1}) == 0) return;
    ++mended_;
  }
}

/// Moves the events of the batch from `begin` on to `copied_`.
void LineSource::copy_events_from(std::size_t begin) {
  const auto move_rest = [begin](auto& from, auto& to) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin), from.end());
    from.resize(begin);
  };
  move_rest(batch_, copied_);
  move_rest(lines_, copied_lines_);
  move_rest(line_numbers_, copied_line_numbers_);
  given_.resize(begin);
}

/// Takes the events in `copied_`, and the other lines between them. The stack of the first may be set already.
void LineSource::take_copied_events(const std::vector<LinePiece::Other>& others, bool is_first_complete) {
  auto other = others.begin();
  for (std::size_t i = 0; i < copied_.size(); ++i) {
    for (; other != others.end() && other->index <= mended_ + i; ++other) take_other(*other);
    line_number_ = copied_line_numbers_[i];
    if (copied_[i].stack != 0 && !(is_first_complete && i == 0)) take_stack(copied_[i]);
    batch_.push_back(copied_[i]);
    add_last(copied_lines_[i]);
  }
  for (; other != others.end(); ++other) take_other(*other);
}

void LineSource::take_other(const LinePiece::Other& other) {
  line_number_ = other.number;
  take(other.line);
}

/// Takes whole lines that were not parsed ahead.
void LineSource::take_lines(std::string_view lines) {
  while (!lines.empty()) {
    ++line_number_;
    const std::size_t length = lines.find('\n');
    take(lines.substr(0, length));
    lines.remove_prefix(length + 1);
  }
}

void LineSource::take_end(std::string_view last) {
  finished_ = true;
  if (!last.empty()) {
    ++line_number_;
    take_last(last);
  }
  end();
  refuse_nonsense();
  mender_.finish();
  add_mended({});
}

/// Throws if the input has wrong lines and no line that was understood.
void LineSource::refuse_nonsense() {
  if (has_understood() || log_.held().empty()) return;
  const Defect& first = log_.held().front();
  const std::string_view content = content_name(start_);
  throw FormatError(first.place, first.what + " (no line of this input is understood" +
                                     (content.empty() ? "" : "; it looks like " + std::string(content)) + ")");
}

void LineSource::add(Event event, std::string_view shown) {
  lines_are_plain_ &= text::is_plain(shown);
  if (!event.label.empty()) event.label = labels_.emplace_back(event.label);
  batch_.push_back(event);
  add_last(shown);
}

/// Mends the event at the end of the batch.
void LineSource::add_last(std::string_view shown) {
  Event& event = batch_.back();
  if (!any_block_) describe_first(event);
  if (mender_.mend(event, given_.emplace_back(), line_number_)) {
    lines_.push_back(shown);
    return line_numbers_.push_back(line_number_);
  }
  batch_.pop_back();
  given_.pop_back();
  add_mended(shown);
}

/// Adds the events that the mender held back. Such an event keeps its line only if that is the current line, since
/// earlier lines may have left the window.
void LineSource::add_mended(std::string_view shown) {
  for (heap::Mender::Item& mended : mender_.take_mended()) {
    if (mended.repair)
      log_.report(place(mended.line), std::string(heap::Mender::describe(*mended.repair)), *mended.repair);
    if (mended.is_dropped) continue;
    Event& event = batch_.emplace_back(mended.event);
    given_.push_back(mended.given);
    if (!event.label.empty()) event.label = labels_.emplace_back(std::move(mended.label));
    line_numbers_.push_back(mended.line);
    lines_.push_back(mended.is_own && mended.line == line_number_ ? shown : std::string_view());
  }
}

std::vector<LiveBlock> LineSource::list_live_blocks() const {
  std::vector<LiveBlock> blocks = mender_.list_live_blocks();
  format::sort_by_tag(blocks);
  return blocks;
}

/// Sets the header by the first event, and by the first event with a block: what the trace records.
void LineSource::describe_first(const Event& event) {
  if (!any_event_) {
    header_.has_times = event.time_ns != unknown;
    any_event_ = true;
  }
  if (!any_block_ && (event.tag != 0 || event.old_tag != 0 || event.address != 0 || event.old_address != 0)) {
    header_.has_addresses = event.address != 0 || event.old_address != 0;
    header_.has_usable = event.usable != unknown;
    any_block_ = true;
  }
}

}  // namespace cmt
