#include "trace/text_source.h"

#include <cstdlib>
#include <cstring>

#include "text/limits.h"

namespace cmt {
namespace {

constexpr std::size_t batch_bytes = 64 * 1024;

}  // namespace

TextSource::TextSource(std::unique_ptr<Input> input, DefectLog& log) : input_(std::move(input)), log_(log) {
  header_.format = Format::text;
  const std::string_view start = input_->peek(4096).substr(0, 4096);
  const std::size_t nul = start.find('\0');
  if (nul != std::string_view::npos && (nul == 0 || start[nul - 1] != '\n')) {
    throw FormatError(input_->name(), "neither a .cmt nor a text trace");
  }
  fill();
  ahead_ = true;
}

/// Hands out lines of the window; false where it is used up. A line that is longer than the limit is cut there.
bool TextSource::next_line(std::string_view& line) {
  const void* const found = window_.empty() ? nullptr : std::memchr(window_.data(), '\n', window_.size());
  if (found == nullptr) return false;
  const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - window_.data());
  line = window_.substr(0, length);
  window_.remove_prefix(length + 1);
  return true;
}

std::span<const Event> TextSource::read() {
  if (!ahead_) fill();
  ahead_ = false;
  return batch_;
}

void TextSource::fill() {
  batch_.clear();
  lines_.clear();
  labels_.clear();
  std::size_t wanted = batch_bytes;
  while (batch_.empty() && !finished_) {
    window_ = input_->peek(wanted).substr(0, wanted);
    const std::size_t offered = window_.size();
    std::string_view line;
    while (next_line(line)) take(line);
    if (window_.starts_with('\0')) return cut_off();
    if (offered < wanted) {
      take_last();
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

/// A recorder that was killed leaves NULs behind its last line: it had room for more.
void TextSource::cut_off() {
  finished_ = truncated_ = true;
  window_ = {};
}

/// The input's end; its last line may lack its LF. Of a text with a header that line is what was cut, and could be read
/// as another.
void TextSource::take_last() {
  const bool is_cut = header_.has_header && !window_.starts_with("#cmt end=");
  if (!window_.empty() && !is_cut) take(window_);
  window_ = {};
  finished_ = true;
  if ((header_.has_header || !header_.metadata.empty()) && !ended_) truncated_ = true;
}

void TextSource::take(std::string_view line) {
  ++line_number_;
  const text::Line& parsed = parser_.parse(line);
  switch (parsed.sort) {
    case text::Line::Sort::blank:
      return;
    case text::Line::Sort::metadata:
      return take_metadata(parsed);
    case text::Line::Sort::event:
      return take_event(line, parsed.event);
    case text::Line::Sort::wrong:
      return log_.report(place(), "expected " + std::string(parsed.expected) + ": " + std::string(line.substr(0, 80)));
  }
}

void TextSource::take_event(std::string_view line, Event event) {
  describe_first(event);
  if (!event.label.empty()) event.label = labels_.emplace_back(event.label);
  const auto repair = tagger_.name(event);
  if (repair != heap::Tagger::Repair::none) {
    log_.report(place(), std::string(heap::Tagger::describe(repair)));
    if (repair == heap::Tagger::Repair::dropped) return;
    if (repair == heap::Tagger::Repair::ended_first) {
      batch_.push_back(tagger_.end_first());
      lines_.push_back({});
    }
  }
  batch_.push_back(event);
  lines_.push_back(text::without_annotation(line));
}

/// The first event, and the first with a block, say what the trace records.
void TextSource::describe_first(const Event& event) {
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

void TextSource::take_metadata(const text::Line& line) {
  if (line.key == "text") {
    if (line.value != "1") throw FormatError(place(), "text version " + line.value + "; this reader knows version 1");
    header_.has_header = true;
  } else if (line.key == "end") {
    ended_ = true;
    truncated_ = line.value != "complete";
  } else if (line.key == "repairs") {
    repairs_ = std::strtoull(line.value.c_str(), nullptr, 10);
  } else if (any_event_) {
    log_.report(place(), "metadata after the first event: dropped");
  } else if (header_.metadata.size() == text::metadata_limit) {
    throw FormatError(place(), "more than 1024 header lines");
  } else {
    header_.metadata.emplace_back(line.key, line.value);
  }
}

}  // namespace cmt
