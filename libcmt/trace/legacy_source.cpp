#include "libcmt/trace/legacy_source.h"

namespace cmt {

std::span<const Event> LegacySource::read() {
  using Result = format::LegacyDecoder::Result;
  constexpr std::size_t batch_events = 2048;
  batch_.clear();
  if (at_end_) return {};
  constexpr std::size_t wanted = batch_events * format::legacy_record_limit;
  const std::string_view window = input_->peek(wanted);
  std::string_view rest = window;
  Result result = Result::event;
  while (batch_.size() < batch_events && !rest.empty()) {
    result = decoder_.next(rest, batch_.emplace_back());
    if (result != Result::event) break;
  }
  const std::string place =
      result == Result::event ? "" : input_->place(input_->offset() + (window.size() - rest.size()));
  input_->skip(window.size() - rest.size());
  if (result == Result::event) {
    at_end_ = rest.empty() && window.size() < wanted;
    return batch_;
  }
  batch_.pop_back();
  at_end_ = truncated_ = true;
  log_.report(place, result == Result::wrong ? "not a record of the .cmt of 2019: read to here"
                                             : "the last record is cut off: read to here");
  return batch_;
}

}  // namespace cmt
