// Writes a .cmt: the file header with the first block, a block whenever one is full, index and totals at the end.
//
// Two facts are known late. The first tag is that of the first allocation, so the events before it wait: they are few
// frees of blocks from before the recording. The first block shows whether addresses and times are recorded at all, so
// the file header is written together with it.
//
// A keyframe holds a table of live blocks, some 4 bytes a block when compressed. A block becomes a keyframe if the
// address streams since the last keyframe take eight times the size of that table, but at most every 16th block does.
// So keyframes add at most an eighth to the addresses.
//
// With two threads, a block is compressed while the next one fills, and its compressed size is known late. With one
// thread the size counts just as late, so that the bytes are the same.

#include "libcmt/trace/cmt_sink.h"

#include <algorithm>
#include <utility>

namespace cmt {
namespace {

constexpr std::uint32_t keyframe_blocks_min = 16;
constexpr std::uint64_t keyframe_share = 8;
constexpr std::uint64_t live_block_bytes = 4;
constexpr std::size_t waiting_limit = 65536;

}  // namespace

void CmtSink::add_event(const BookedEvent& booked) {
  if (started_ || !begin(booked)) encode(booked);
}

void CmtSink::add_batch(const EventBatch& batch) {
  if (!started_) return Sink::add_batch(batch);
  std::span<const BlockEvent> events = batch.events();
  const BookedEvent* other = batch.others().data();
  while (!events.empty()) {
    const std::size_t count = encode_core(events, other);
    other = encode_columns(events.first(count), other, batch.has_times());
    events = events.subspan(count);
    events_ += count;
    if (!block_is_full()) continue;
    flush_block();
    start_block(events.empty());  // the keeper's blocks are those after the whole batch
  }
}

std::size_t CmtSink::room() const { return started_ ? options_.block_events - core_.events() : 1; }

/// Keeps an event from before the first allocation. Returns false if the event is that allocation.
bool CmtSink::begin(const BookedEvent& booked) {
  const Event& event = booked.event;
  if (event.tag != 0) {
    start_core(event.tag);
    return false;
  }
  waiting_above_ = std::max(waiting_above_, event.old_tag + 1);
  waiting_.emplace_back(event, event.label);
  if (waiting_.size() == waiting_limit) start_core(waiting_above_);
  return true;
}

void CmtSink::start_core(Tag next_tag) {
  started_ = true;
  core_.reset({.next_tag = next_tag});
  start_block();
  for (auto& [event, label] : waiting_) {
    event.label = label;
    encode({event, {}});
  }
  waiting_.clear();
}

void CmtSink::encode(const BookedEvent& booked) {
  core_.add(booked.event);
  addresses_.add(booked.event, booked.old.tag != 0 ? &booked.old : nullptr);
  times_.add(booked.event.time_ns);
  usable_.add(booked.event);
  ++events_;
  if (!block_is_full()) return;
  flush_block();
  start_block();
}

/// Encodes events until the block is full. Returns how many. `other`: the first of those that are not in short form.
std::size_t CmtSink::encode_core(std::span<const BlockEvent> events, const BookedEvent* other) {
  for (std::size_t i = 0;;) {
    i += core_.add_short(events.subspan(i));
    if (i == events.size() || core_.full()) return i;
    const BlockEvent& event = events[i++];
    core_.add(event.tag != 0 ? event.event() : other++->event);
    if (core_.full()) return i;
  }
}

/// Encodes the same events' addresses, times and usable sizes. Returns the next of the others.
const BookedEvent* CmtSink::encode_columns(std::span<const BlockEvent> events, const BookedEvent* other,
                                           bool has_times) {
  constexpr std::size_t ahead = 12;
  std::size_t made = 0;  // since the last of the others
  for (std::size_t i = 0; i < events.size(); ++i) {
    const BlockEvent& event = events[i];
    addresses_.prefetch(events[std::min(i + ahead, events.size() - 1)].block_size);
    if (event.tag != 0) {
      addresses_.add_short(event);
      made += event.makes_block ? 1 : 0;
    } else {
      addresses_.add(other->event, other->old.tag != 0 ? &other->old : nullptr);
      usable_.put_unknown(std::exchange(made, 0));
      usable_.add(other++->event);
    }
  }
  usable_.put_unknown(made);
  if (has_times) {
    for (const BlockEvent& event : events) times_.add(event.time_ns);
  } else {
    times_.put_unknown(events.size());
  }
  return other;
}

void CmtSink::start_block(bool may_be_keyframe) {
  block_ = format::BlockHeader{.first_event = events_, .core = core_.state(), .time_ns = times_.last_ns()};
  core_.reset(block_.core);
  block_.keyframe = events_ == 0 || (may_be_keyframe && keyframe_is_due());
  live_table_.clear();
  if (!block_.keyframe) return;
  if (events_ != 0) live_table_ = format::put_live(keeper_.list_live_blocks());
  if (last_) last_->counts = false;
  addresses_.reset();
  blocks_since_keyframe_ = 0;
  address_bytes_since_keyframe_ = 0;
}

bool CmtSink::keyframe_is_due() const {
  return blocks_since_keyframe_ >= keyframe_blocks_min &&
         address_bytes_since_keyframe_ > keyframe_share * live_block_bytes * keeper_.live_blocks();
}

void CmtSink::compress(FullBlock& block) {
  for (const auto& [id, raw] : block.streams) {
    const std::string_view frame = compressor_.compress(raw);
    block.header.streams.push_back({static_cast<std::uint64_t>(id), raw.size(), frame.size()});
    block.body += frame;
    if (id == format::StreamId::addresses) block.address_bytes = frame.size();
  }
  block.streams.clear();
}

void CmtSink::put_header() {
  if (header_written_) return;
  header_written_ = true;
  output_.write(format::put_file_header(header_));
}

void CmtSink::flush_block() {
  block_.events = core_.events();
  if (block_.events == 0) return;
  settle();
  FullBlock& block = last_.emplace();
  block.header = std::move(block_);
  const auto add = [&](format::StreamId id, std::string raw) {
    const bool any = !raw.empty();
    if (any) block.streams.emplace_back(id, std::move(raw));
    return any;
  };
  add(format::StreamId::core, core_.finish());
  add(format::StreamId::live, std::move(live_table_));
  const bool has_addresses = add(format::StreamId::addresses, addresses_.finish());
  const bool has_times = add(format::StreamId::times, times_.finish());
  const bool has_usable = add(format::StreamId::usable, usable_.finish());
  if (!header_written_) {
    header_.has_addresses = has_addresses;
    header_.has_times = has_times;
    header_.has_usable = has_usable;
  }
  put_header();
  ++blocks_since_keyframe_;
  if (options_.threads > 1) {
    compressed_ = std::async(std::launch::async, [this] { compress(*last_); });
  } else {
    compress(block);
    write(block);
  }
}

void CmtSink::write(const FullBlock& block) {
  index_.push_back(block.header.start_at(output_.offset()));
  output_.write(format::put_section(format::SectionType::block, block.header.put(),
                                    static_cast<std::uint32_t>(block.body.size())));
  output_.write(block.body);
}

/// Writes the block that was full last, if a thread has compressed it, and counts its size for the next keyframe.
void CmtSink::settle() {
  if (!last_) return;
  if (compressed_.valid()) {
    compressed_.get();
    write(*last_);
  }
  if (last_->counts) address_bytes_since_keyframe_ += last_->address_bytes;
  last_.reset();
}

void CmtSink::flush() {
  if (!started_ || core_.events() == 0) return;
  flush_block();
  start_block();
  settle();
}

void CmtSink::finish(const Totals& totals) {
  if (!started_) start_core(waiting_above_);
  flush_block();
  settle();
  put_header();
  const std::uint64_t index_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::index, format::put_index(index_)));
  const std::uint64_t totals_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::totals, format::put_totals(totals)));
  output_.write(format::put_tail(index_offset, totals_offset));
}

}  // namespace cmt
