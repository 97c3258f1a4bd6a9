// Checks and decompresses a block of the stream, and decodes its streams in two steps, as block_decoder.h describes.

#include "libcmt/trace/file/block_decoder.h"

#include <algorithm>
#include <cassert>

#include "libcmt/format/stacks/stack_names.h"

namespace cmt {

using format::SectionStart;
using format::StreamId;
using format::WireError;

namespace {

constexpr std::array<std::string_view, 11> stream_names{"",       "core",        "address",   "live block",
                                                        "time",   "usable size", "stack",     "stack definition",
                                                        "origin", "pool stack",  "frame name"};

}  // namespace

void fail_in_stream(StreamId id, std::uint64_t frame_offset, const WireError& error) {
  assert(static_cast<std::size_t>(id) < stream_names.size());
  throw WireError(frame_offset, std::string(stream_names[static_cast<std::size_t>(id)]) + " stream: byte " +
                                    format::hex_text(error.offset()) + ": " + error.what());
}

BlockBytes::BlockBytes(std::string_view section, const SectionStart& start, const ReadOptions& wanted, bool live,
                       format::Decompressor& decompressor)
    : header_(take_fields(format::BlockHeader::take, format::take_section_header(section, start))) {
  place_frames(start);
  decompress(StreamId::core, section, decompressor);
  if (live) decompress(StreamId::live, section, decompressor);
  if (wanted.addresses) decompress(StreamId::addresses, section, decompressor);
  if (wanted.times) decompress(StreamId::times, section, decompressor);
  if (wanted.usable) decompress(StreamId::usable, section, decompressor);
  if (!wanted.stacks) return;
  decompress(StreamId::stacks, section, decompressor);
  decompress(StreamId::stack_nodes, section, decompressor);
  decompress(StreamId::pool_stacks, section, decompressor);
  decompress(StreamId::frame_names, section, decompressor);
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
    assert(frame_offsets_[number] != 0);
    in_stream(id, [&] {
      streams_[number].bytes =
          decompressor.decompress(section.substr(frame_offsets_[number], each.size), each.raw_size);
      streams_[number].size = each.raw_size;
    });
  }
}

void BlockBytes::fail_in(StreamId id, const WireError& error) const {
  fail_in_stream(id, frame_offsets_[static_cast<std::size_t>(id)], error);
}

void BlockDecoder::start(BlockBytes&& bytes, bool fresh, std::uint64_t offset) {
  assert(!core_);
  block_.reset();  // a block whose core stream cannot be opened is not open
  auto block = std::make_shared<const OpenBlock>(OpenBlock{std::move(bytes), fresh, offset});
  std::fill(batch_.begin(), batch_.end(), Event{});  // since a stream that this block lacks fills nothing in
  const format::BlockHeader& header = block->bytes.header();
  block->bytes.in_stream(StreamId::core, [&] {
    core_.emplace(block->bytes.stream(StreamId::core), header.core, header.events, header.pools, is_sampled_);
  });
  block_ = std::move(block);
}

/// Opens all streams but the core.
void BlockDecoder::open_streams() {
  const BlockBytes& bytes = completed_->bytes;
  const bool fresh = completed_->fresh;
  const format::BlockHeader& header = bytes.header();
  const auto open = [&](StreamId id, const auto& step) { bytes.in_stream(id, [&] { step(bytes.stream(id)); }); };
  if (wanted_.addresses) {
    if (addresses_ == nullptr || fresh) addresses_ = std::make_unique<format::AddressDecoder>();
    if (fresh) open(StreamId::live, [&](std::string_view table) { addresses_->take_live(table); });
    open(StreamId::addresses, [&](std::string_view stream) { addresses_->start(stream, header.keyframe); });
  }
  open(StreamId::times, [&](std::string_view stream) { times_.start(stream, header.time_ns); });
  open(StreamId::usable, [&](std::string_view stream) { usable_.start(stream); });
  if (!wanted_.stacks) return;
  const bool are_new = !knows_stacks_of(header.first_event);
  open(StreamId::stack_nodes, [&](std::string_view stream) { define_stacks(header, stream); });
  if (are_new)
    open(StreamId::frame_names,
         [&](std::string_view stream) { format::take_frame_names(stream, definitions_.table()); });
  open(StreamId::stacks,
       [&](std::string_view stream) { stacks_.start(stream, definitions_, stacks_before_.at(header.first_event)); });
  open(StreamId::pool_stacks, [&](std::string_view stream) {
    pool_stacks_.start(stream, definitions_, stacks_before_.at(header.first_event));
  });
}

void BlockDecoder::define_stacks(const format::BlockHeader& header, std::string_view stream) {
  const std::size_t known = definitions_.stacks().size() - 1;
  if (knows_stacks_of(header.first_event)) return;
  if (header.first_event != events_defined_) throw WireError(0, "blocks are missing before this one");
  events_defined_ += header.events;
  if (!stream.empty()) definitions_.take_block(stream, header.events);
  stacks_before_.emplace(header.first_event, known);
}

void BlockDecoder::stop() {
  unknown_kinds_ = unknown_kinds();
  core_.reset();
  block_.reset();
}

template <typename Decoder>
void BlockDecoder::fill(StreamId id, Decoder& decoder, std::span<Event> events) {
  completed_->bytes.in_stream(id, [&] { decoder.fill(events); });
}

std::size_t BlockDecoder::next_core(std::span<Event> events) {
  assert(block_ != nullptr && core_);
  return block_->bytes.in_stream(StreamId::core,
                                 [&] { return core_->next(events.first(std::min(events.size(), batch_events))); });
}

void BlockDecoder::complete(const std::shared_ptr<const OpenBlock>& block, std::span<Event> events) {
  assert(block != nullptr && events.size() <= batch_events);
  if (completed_ != block) {
    completed_ = block;
    open_streams();
  }
  if (events.empty()) return check_ends();
  if (addresses_) fill(StreamId::addresses, *addresses_, events);
  fill(StreamId::times, times_, events);
  fill(StreamId::usable, usable_, events);
  if (!wanted_.stacks) return;
  fill(StreamId::stacks, stacks_, events);
  fill(StreamId::pool_stacks, pool_stacks_, events);
}

std::span<const Event> BlockDecoder::next() {
  if (!core_) return {};
  const std::span<Event> events(batch_.data(), next_core(batch_));
  complete(block_, events);
  if (events.empty()) stop();
  return events;
}

/// Checks that every stream ends with the last event of the block.
void BlockDecoder::check_ends() {
  const auto check = [&](StreamId id, const auto& decoder) {
    if (decoder.at_end()) return;
    completed_->bytes.in_stream(id, [&]() -> void { throw WireError(decoder.offset(), "bytes after the last event"); });
  };
  if (addresses_) check(StreamId::addresses, *addresses_);
  check(StreamId::times, times_);
  check(StreamId::usable, usable_);
  if (!wanted_.stacks) return;
  check(StreamId::stacks, stacks_);
  check(StreamId::pool_stacks, pool_stacks_);
}

}  // namespace cmt
