// The groups of a flight recorder: how they are filled, dropped block by block, and written to a file.

#include "preload/collector/flight/flight_blocks.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "libcmt/format/coding.h"
#include "libcmt/format/sections.h"
#include "libcmt/trace/file/block_decoder.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t groups_wanted = 8, blocks_wanted = 4;
constexpr std::uint64_t block_events_least = 256;
/// How many blocks are folded in for each one that becomes full. With two, dropping a group is complete before the next
/// group is full.
constexpr int drops_at_once = 2;

/// The source of live blocks for the events that make the blocks live at the begin. It reports so many live blocks that
/// the sink makes no keyframe.
struct NoKeyframes : LiveBlockSource {
  std::size_t live_blocks() const override { return std::size_t{1} << 56; }
  std::vector<format::LiveBlock> list_live_blocks() const override { return {}; }
};

Repairs repairs_since(const Repairs& before, Repairs now) {
  for (std::size_t i = 0; i < now.by_kind.size(); ++i) now.by_kind[i] -= before.by_kind[i];
  now.other -= before.other;
  return now;
}

/// Reports a disk that has returned other bytes than were written. The frames' checksums detect this.
[[noreturn]] void fail_damaged() { throw std::system_error(EIO, std::generic_category(), "kept events"); }

}  // namespace

void FlightBlocks::begin_group(const Repairs& repairs) {
  const Totals before = groups_.back().tally.totals();
  Group& group = groups_.emplace_back();
  group.begin_ns = now_ns_;
  group.repairs_before = repairs;
  group.tally.begin_after(before);
}

void FlightBlocks::put(FullBlock& full, std::span<const EventStack> stacks) {
  Group& group = groups_.back();
  Block block{.header = std::move(full.header), .offset = group.chain.bytes, .bytes = full.body.size()};
  std::string bytes = std::move(full.body);
  if (const std::string column = put_stack_column(stacks); !column.empty()) {
    const std::string_view frame = compressor_.compress(column);
    block.raw_stacks_bytes = column.size();
    block.stacks_bytes = frame.size();
    bytes += frame;
  }
  while (!chunks_.append(group.chain, bytes, !can_drop())) drop_oldest();
  for (const format::StreamStart& stream : block.header.streams) {
    if (stream.id == static_cast<std::uint64_t>(format::StreamId::live)) group.table_bytes = stream.size;
  }
  events_ += block.header.events;
  block_bytes_ += bytes.size();
  kept_bytes_ += bytes.size();
  group.blocks.push_back(std::move(block));
  drop_some();
}

/// The bytes that are allowed, or that there is room for while the disk is full.
std::uint64_t FlightBlocks::bytes_max() const {
  return chunks_.memory_bytes() == 0 ? limits_.bytes : std::min(limits_.bytes, chunks_.room());
}

bool FlightBlocks::is_group_full() const {
  const Group& group = groups_.back();
  const bool is_old = limits_.ns != 0 && group_ns() >= limits_.ns / groups_wanted;
  return is_old || group.chain.bytes - group.table_bytes >= bytes_max() / groups_wanted;
}

std::size_t FlightBlocks::block_events_max() const {
  constexpr std::uint64_t bytes_per_event_unknown = 4;
  const std::uint64_t bytes = bytes_max() / (groups_wanted * blocks_wanted);
  const double per_event =
      events_ == 0 ? bytes_per_event_unknown : static_cast<double>(block_bytes_ + 1) / static_cast<double>(events_);
  return static_cast<std::size_t>(std::clamp(static_cast<double>(bytes) / per_event,
                                             static_cast<double>(block_events_least),
                                             static_cast<double>(limits_.block_events)));
}

/// Whether the oldest group may be dropped. The next group must have begun, and either the other groups cover the
/// requested time, or there are too many bytes. Groups with large keyframes are large, and then up to twice as many
/// bytes are kept.
bool FlightBlocks::is_drop_due() const {
  if (!can_drop()) return false;
  const bool is_old = limits_.ns != 0 && now_ns_ - groups_[1].begin_ns >= limits_.ns;
  const bool leaves_half = kept_bytes_ - groups_.front().chain.bytes >= limits_.bytes / 2;
  return is_old || (leaves_half && kept_bytes_ > limits_.bytes) || kept_bytes_ / 2 > limits_.bytes;
}

void FlightBlocks::drop_some() {
  for (int i = 0; i < drops_at_once; ++i) {
    if (!is_dropping_ && !is_drop_due()) return;
    drop_block();
  }
}

/// Drops the oldest group at once.
void FlightBlocks::drop_oldest() {
  const std::size_t groups = groups_.size();
  while (groups_.size() == groups) drop_block();
}

void FlightBlocks::begin_drop() {
  assert(can_drop());
  const Group& next = groups_[1];
  const std::string section = section_of(next, next.blocks.front());
  const ReadOptions nothing{.addresses = false, .times = false, .usable = false};
  const BlockBytes keyframe(section, format::take_section_start(section), nothing, true, decompressor_);
  live_.begin_fold(list_live(keyframe.stream(format::StreamId::live)));
  is_dropping_ = true;
  dropping_ = 0;
}

/// Folds the next block of the oldest group into live_, and drops the group after its last block.
void FlightBlocks::drop_block() try {
  if (!is_dropping_) begin_drop();
  Group& group = groups_.front();
  assert(dropping_ <= group.blocks.size());
  if (dropping_ != group.blocks.size()) {
    const Block& block = group.blocks[dropping_++];
    const std::string section = section_of(group, block);
    const ReadOptions wanted{.addresses = false};
    StackTable none;
    BlockDecoder decoder(wanted, none);
    decoder.start(BlockBytes(section, format::take_section_start(section), wanted, false, decompressor_), true);
    const std::vector<EventStack> column = stacks_of(group, block);
    std::span<const EventStack> stacks = column;
    for (auto events = decoder.next(); !events.empty(); events = decoder.next()) live_.add(events, stacks);
  }
  if (dropping_ != group.blocks.size()) return;
  live_.finish_fold();
  assert(kept_bytes_ >= group.chain.bytes);
  kept_bytes_ -= group.chain.bytes;
  chunks_.release(group.chain);
  groups_.pop_front();
  is_dropping_ = false;
} catch (const format::WireError&) {
  fail_damaged();
}

/// Returns a block as the section of a file.
std::string FlightBlocks::section_of(const Group& group, const Block& block) const {
  return format::put_section(format::SectionType::block, block.header.put(), static_cast<std::uint32_t>(block.bytes)) +
         chunks_.read(group.chain, block.offset, block.bytes);
}

std::vector<EventStack> FlightBlocks::stacks_of(const Group& group, const Block& block) {
  if (block.stacks_bytes == 0) return {};
  std::string column;
  decompressor_.decompress(chunks_.read(group.chain, block.offset + block.bytes, block.stacks_bytes),
                           block.raw_stacks_bytes, column);
  return take_stack_column(column);
}

FlightSpan FlightBlocks::span() const {
  FlightSpan span{.from_ns = groups_.front().begin_ns, .to_ns = now_ns_};
  for (const Group& group : groups_) {
    for (const Block& block : group.blocks) span.events += block.header.events;
  }
  assert(span.events <= events_);
  span.dropped_events = events_ - span.events;
  return span;
}

/// Puts events that make the blocks live at the begin, and a mark. The kept events follow them as if all earlier events
/// were there.
void FlightBlocks::put_live(CmtSink& sink, Tally& tally) {
  assert(!groups_.front().blocks.empty());
  const format::BlockHeader& first = groups_.front().blocks.front().header;
  bool is_begun = false;
  const auto begin_at = [&](Tag tag) {
    if (!std::exchange(is_begun, true)) sink.start_at({.next_tag = tag, .named_tag = first.core.named_tag});
  };
  live_.for_each_event([&](const Event& event) {
    begin_at(event.tag);
    tally.count(event, {});
    sink.add_event({event, {}});
  });
  begin_at(first.core.next_tag);
  sink.skip_tags_to(first.core.next_tag);
  const std::string label = "slice " + std::to_string(first.first_event) + ":";
  const Event mark{.kind = Kind::mark,
                   .thread = first.core.thread,
                   .time_ns = first.time_ns != 0 ? first.time_ns : unknown,
                   .label = label};
  tally.count(mark, {});
  sink.add_event({mark, {}});
}

/// Encodes the core stream of a block again, to follow another state. Returns the state at its end.
format::CoreState FlightBlocks::encode_after(const format::CoreState& state, const std::string& section,
                                             FullBlock& block) {
  const ReadOptions nothing{.addresses = false, .times = false, .usable = false};
  StackTable none;
  BlockDecoder decoder(nothing, none);
  decoder.start(BlockBytes(section, format::take_section_start(section), nothing, false, decompressor_), true);
  format::CoreEncoder encoder(state);
  for (auto events = decoder.next(); !events.empty(); events = decoder.next()) {
    for (const Event& event : events) encoder.add(event);
  }
  const std::string core = encoder.finish();
  const std::string_view frame = compressor_.compress(core);
  format::StreamStart& first = block.header.streams.front();  // the core stream, as CmtSink writes it
  assert(first.id == static_cast<std::uint64_t>(format::StreamId::core));
  block.body.replace(0, first.size, frame);
  first.raw_size = core.size();
  first.size = frame.size();
  block.header.core = state;
  return encoder.state();
}

FlightSpan FlightBlocks::write(Output& output, Header header, const StackTable* stacks, const Repairs& repairs,
                               bool truncated, bool goes_on) try {
  while (is_dropping_) drop_block();
  FlightSpan span = this->span();
  if (span.dropped_events != 0) header.metadata.emplace_back("slice", std::to_string(span.dropped_events) + ":");
  if (span.dropped_events != 0 || goes_on) {
    header.metadata.emplace_back("kept", std::to_string(span.from_ns) + "ns:" + std::to_string(span.to_ns) + "ns");
  }
  const NoKeyframes none;
  CmtSink sink(output, std::move(header), {.level = 1}, none);
  if (stacks != nullptr) sink.use_stacks(*stacks);
  Tally tally;
  if (span.dropped_events != 0 && span.events != 0) put_live(sink, tally);
  span.live_events = tally.totals().events;
  std::optional<format::CoreState> state;  // set if the next block has to begin with another state than its own
  if (span.live_events != 0) state = sink.state();
  for (const Group& group : groups_) {
    for (const Block& block : group.blocks) {
      FullBlock full;
      full.header = block.header;
      full.body = chunks_.read(group.chain, block.offset, block.bytes);
      if (state && *state != block.header.core) {
        state = encode_after(*state, section_of(group, block), full);
      } else {
        state.reset();
      }
      sink.append_block(std::move(full), stacks_of(group, block));
    }
    tally.append(group.tally);
  }
  Totals totals = tally.totals();
  totals.repairs = repairs_since(groups_.front().repairs_before, repairs);
  totals.truncated = truncated;
  sink.finish(totals);
  span.bytes = output.offset();
  return span;
} catch (const format::WireError&) {
  fail_damaged();
}

}  // namespace cmt::collector
