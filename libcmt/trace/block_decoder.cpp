#include "libcmt/trace/block_decoder.h"

#include <algorithm>

namespace cmt {

using format::StreamId;
using format::WireError;

void BlockDecoder::start(BlockBytes&& bytes, bool fresh) {
  bytes_ = std::move(bytes);
  std::fill(batch_.begin(), batch_.end(), Event{});  // a stream that this block lacks fills nothing in
  const format::BlockHeader& header = bytes_.header();
  const auto open = [&](StreamId id, const auto& step) { bytes_.in_stream(id, [&] { step(bytes_.stream(id)); }); };
  open(StreamId::core, [&](std::string_view core) { core_.emplace(core, header.core, header.events); });
  if (wanted_.addresses) {
    if (addresses_ == nullptr || fresh) addresses_ = std::make_unique<format::AddressDecoder>();
    if (fresh) open(StreamId::live, [&](std::string_view table) { addresses_->take_live(table); });
    open(StreamId::addresses, [&](std::string_view stream) { addresses_->start(stream, header.keyframe); });
  }
  open(StreamId::times, [&](std::string_view stream) { times_.start(stream, header.time_ns); });
  open(StreamId::usable, [&](std::string_view stream) { usable_.start(stream); });
}

void BlockDecoder::stop() {
  unknown_kinds_ = unknown_kinds();
  core_.reset();
}

template <typename Decoder>
void BlockDecoder::fill(StreamId id, Decoder& decoder, std::span<Event> events) {
  bytes_.in_stream(id, [&] { decoder.fill(events); });
}

std::span<const Event> BlockDecoder::next() {
  if (!core_) return {};
  const std::size_t count = bytes_.in_stream(StreamId::core, [&] { return core_->next(batch_); });
  if (count == 0) {
    check_ends();
    stop();
    return {};
  }
  const std::span<Event> events(batch_.data(), count);
  if (addresses_) fill(StreamId::addresses, *addresses_, events);
  fill(StreamId::times, times_, events);
  fill(StreamId::usable, usable_, events);
  return events;
}

/// Every stream ends with its block's last event.
void BlockDecoder::check_ends() {
  const auto check = [&](StreamId id, const auto& decoder) {
    if (decoder.at_end()) return;
    bytes_.in_stream(id, [&]() -> void { throw WireError(decoder.offset(), "bytes after the last event"); });
  };
  if (addresses_) check(StreamId::addresses, *addresses_);
  check(StreamId::times, times_);
  check(StreamId::usable, usable_);
}

}  // namespace cmt
