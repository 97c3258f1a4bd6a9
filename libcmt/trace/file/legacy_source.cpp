// Decodes the records of the .cmt of 2019, whose bytes legacy_source.h describes.

#include "libcmt/trace/file/legacy_source.h"

#include <cassert>

namespace cmt {
namespace {

/// Takes a number of at most five bytes. Returns its length; 0 if the bytes end within it, -1 if it has no end.
int take_number(std::string_view bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned i = 0; i < 5; ++i) {
    if (i == bytes.size()) return 0;
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte & 0x80) return static_cast<int>(i) + 1;
  }
  return -1;
}

constexpr std::size_t legacy_record_limit = 15;

enum class Result { event, incomplete, wrong };

/// Takes one record off the front of `bytes`. `newest` is the newest tag so far.
Result take_record(std::string_view& bytes, Tag& newest, Event& event) {
  std::string_view rest = bytes;
  std::uint64_t field[3] = {};  // size, distance, step
  for (int i = 0; i < 3 && (i < 2 || field[0] != 0); ++i) {
    const int length = take_number(rest, field[i]);
    if (length == 0) return Result::incomplete;
    if (length < 0) return Result::wrong;
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  const auto [size, distance, step] = field;
  if (distance > newest || (size == 0) == (step != 0) || (size == 0 && distance == 0)) return Result::wrong;
  event = Event{};
  event.size = size;
  event.old_tag = distance == 0 ? 0 : newest + 1 - distance;
  event.kind = size == 0 ? Kind::free : distance == 0 ? Kind::malloc : Kind::realloc;
  if (size != 0) event.tag = newest += step;
  assert(event.tag != 0 || event.old_tag != 0);
  bytes = rest;
  return Result::event;
}

}  // namespace

bool is_legacy(std::string_view start) {
  Event event;
  Tag newest = 0;
  return take_record(start, newest, event) == Result::event && event.kind == Kind::malloc && event.size > 0;
}

std::span<const Event> LegacySource::read() {
  constexpr std::size_t batch_events = 2048;
  batch_.clear();
  if (at_end_) return {};
  constexpr std::size_t wanted = batch_events * legacy_record_limit;
  const std::string_view window = input_->peek(wanted);
  std::string_view rest = window;
  Result result = Result::event;
  while (batch_.size() < batch_events && !rest.empty()) {
    result = take_record(rest, newest_, batch_.emplace_back());
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
