#include "libcmt/trace/block_bytes.h"

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

}  // namespace cmt
