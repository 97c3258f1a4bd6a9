#include "libcmt/trace/block_decoder.h"

#include <algorithm>

namespace cmt {

using format::SectionStart;
using format::StreamId;
using format::WireError;

namespace {

constexpr std::array<const char*, 7> stream_names{"", "core", "address", "live block", "time", "usable size", "stack"};

}  // namespace

BlockBytes::BlockBytes(std::string_view section, const SectionStart& start, const ReadOptions& wanted, bool live,
                       format::Decompressor& decompressor)
    : header_(take_fields(format::BlockHeader::take, format::take_section_header(section, start))) {
  place_frames(start);
  decompress(StreamId::core, section, decompressor);
  if (live) decompress(StreamId::live, section, decompressor);
  if (wanted.addresses) decompress(StreamId::addresses, section, decompressor);
  if (wanted.times) decompress(StreamId::times, section, decompressor);
  if (wanted.usable) decompress(StreamId::usable, section, decompressor);
}

void BlockBytes::place_frames(const SectionStart& start) {
  std::uint64_t offset = start.total() - start.body_size;
  for (const format::StreamStart& each : header_.streams) {
    if (each.id < frame_offsets_.size()) {
      if (frame_offsets_[each.id] != 0) throw WireError(0, "a block with two streams of one kind");
      frame_offsets_[each.id] = offset;
    }
    offset += each.size;
  }
  if (offset != start.total()) throw WireError(0, "the sizes of the streams do not add up to the body");
  if (frame_offsets_[static_cast<std::size_t>(StreamId::core)] == 0)
    throw WireError(0, "a block without a core stream");
}

void BlockBytes::decompress(StreamId id, std::string_view section, format::Decompressor& decompressor) {
  const auto number = static_cast<std::size_t>(id);
  for (const format::StreamStart& each : header_.streams) {
    if (each.id != number) continue;
    in_stream(id, [&] {
      streams_[number].bytes =
          decompressor.decompress(section.substr(frame_offsets_[number], each.size), each.raw_size);
      streams_[number].size = each.raw_size;
    });
  }
}

void BlockBytes::fail_in(StreamId id, const WireError& error) const {
  const auto number = static_cast<std::size_t>(id);
  throw WireError(frame_offsets_[number], std::string(stream_names[number]) + " stream: byte " +
                                              format::hex_text(error.offset()) + ": " + error.what());
}

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

/// Checks that every stream ends with the last event of the block.
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
