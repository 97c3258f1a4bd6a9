#include "libcmt/trace/line_source.h"

#include "libcmt/text/parser.h"

namespace cmt {
namespace {

constexpr std::size_t batch_bytes = 16 * 1024;  // some 600 events, which stay in the cache
constexpr std::size_t content_start = 64;
constexpr std::size_t nonsense_limit = 100'000;  // lines without an event

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
  return batch_;
}

/// An error is thrown when the events before it have been handed out.
void LineSource::fill() {
  if (error_) std::rethrow_exception(error_);
  try {
    read_batch();
  } catch (const FormatError&) {
    if (batch_.empty()) throw;
    error_ = std::current_exception();
  }
}

void LineSource::read_batch() {
  batch_.clear();
  lines_.clear();
  line_numbers_.clear();
  labels_.clear();
  std::size_t wanted = batch_bytes;
  while (batch_.empty() && !finished_) {
    if (log_.held().size() >= nonsense_limit) refuse_nonsense();
    window_ = input_->peek(wanted).substr(0, wanted);
    const std::size_t offered = window_.size();
    take_lines();
    if (window_.starts_with('\0')) {
      // A recorder that was killed leaves NULs behind its last line: it had reserved room for more.
      truncated_ = true;
      return take_end({});
    }
    if (offered < wanted) {
      take_end(window_);
    } else if (window_.size() == offered) {
      if (offered >= text::line_limit) {
        ++line_number_;
        throw FormatError(place(), "a line of more than 1 MiB: not a trace");
      }
      wanted += batch_bytes;
      continue;
    }
    input_->skip(offered - window_.size());
    wanted = batch_bytes;
  }
}

/// Reads all whole lines of the window.
void LineSource::take_lines() {
  const std::size_t end = window_.rfind('\n');
  if (end == std::string_view::npos) return;
  std::string_view lines = window_.substr(0, end + 1);
  window_.remove_prefix(end + 1);
  while (!lines.empty()) {
    ++line_number_;
    std::size_t length = take_plain(lines, batch_.emplace_back());
    if (length != 0) {
      add_last(lines.substr(0, length));
    } else {
      batch_.pop_back();
      length = lines.find('\n');
      take(lines.substr(0, length));
    }
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
  window_ = {};
}

/// Throws where no line of the input is an event, and some are none of this form.
void LineSource::refuse_nonsense() {
  if (any_event_ || log_.held().empty()) return;
  const Defect& first = log_.held().front();
  const std::string_view content = content_name(start_);
  throw FormatError(first.place, first.what + " (no line of this input is understood" +
                                     (content.empty() ? "" : "; it looks like " + std::string(content)) + ")");
}

void LineSource::add(Event event, std::string_view shown) {
  if (!event.label.empty()) event.label = labels_.emplace_back(event.label);
  batch_.push_back(event);
  add_last(shown);
}

/// Mends the event at the end of the batch.
void LineSource::add_last(std::string_view shown) {
  Event& event = batch_.back();
  if (!any_block_) describe_first(event);
  if (mender_.mend(event, line_number_)) {
    lines_.push_back(shown);
    return line_numbers_.push_back(line_number_);
  }
  batch_.pop_back();
  add_mended(shown);
}

/// Adds the events that the mender held back. Such an event keeps its line only if it is the current one, since earlier
/// lines may have left the window.
void LineSource::add_mended(std::string_view shown) {
  for (heap::Mender::Item& mended : mender_.take_mended()) {
    if (mended.repair)
      log_.report(place(mended.line), std::string(heap::Mender::describe(*mended.repair)), *mended.repair);
    if (mended.is_dropped) continue;
    Event& event = batch_.emplace_back(mended.event);
    if (!event.label.empty()) event.label = labels_.emplace_back(std::move(mended.label));
    line_numbers_.push_back(mended.line);
    lines_.push_back(mended.is_own && mended.line == line_number_ ? shown : std::string_view());
  }
}

/// Learns from the first event, and from the first with a block, what the trace records.
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
