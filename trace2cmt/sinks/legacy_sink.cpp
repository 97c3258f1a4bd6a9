#include "legacy_sink.h"

#include <algorithm>

namespace trace2cmt {
namespace {

constexpr std::size_t legacy_buffer_bytes = 64 * 1024;
constexpr std::uint64_t first_step = 2;

}  // namespace

void LegacySink::put(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  PlainCall call = calls_.nearest(event, old != nullptr);
  if (call.kind == PlainCall::Kind::none) return;
  std::uint64_t distance = 0;
  if (call.kind != PlainCall::Kind::malloc) distance = in_file(newest_) + 1 - in_file(call.old_tag);
  if (distance > number_limit) {
    calls_.count(Loss::too_old);
    if (call.kind == PlainCall::Kind::free) return;
    distance = 0;
  }
  put_number(call.size);
  put_number(distance);
  if (call.size != 0) put_number(step_to(call.tag));
  if (buffer_.size() < legacy_buffer_bytes) return;
  output_.write(buffer_);
  buffer_.clear();
}

void LegacySink::put_number(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) buffer_ += static_cast<char>(number & 0x7f);
  buffer_ += static_cast<char>(number | 0x80);
}

/// Moves on to a tag, and returns by how much in the file.
std::uint64_t LegacySink::step_to(cmt::Tag tag) {
  std::uint64_t step = tag - newest_;
  if (shifts_.empty() || step > number_limit) {
    const cmt::Tag before = shifts_.empty() ? 0 : in_file(newest_);
    step = shifts_.empty() ? first_step : 1;
    shifts_.push_back({tag, tag - (before + step)});
  }
  newest_ = tag;
  return step;
}

cmt::Tag LegacySink::in_file(cmt::Tag tag) const {
  const auto after = std::upper_bound(shifts_.begin(), shifts_.end(), tag,
                                      [](cmt::Tag wanted, const Shift& shift) { return wanted < shift.from; });
  return tag - std::prev(after)->less;
}

void LegacySink::finish(const cmt::Repairs&, bool) {
  output_.write(buffer_);
  buffer_.clear();
  calls_.report("legacy", say_);
}

}  // namespace trace2cmt
