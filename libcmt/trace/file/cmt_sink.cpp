// Writes a .cmt: the file header with the first block, a block whenever one is full, index and totals at the end.
//
// Two facts are known late:
//
// - The first tag is the tag of the first allocation. The events before it wait. They are few: frees of blocks that
// were
//   made before the recording.
// - The first block shows whether addresses and times are recorded at all. So the file header is written with it.
//
// A keyframe holds a table of live blocks, some 4 bytes a block when compressed. A block becomes a keyframe if the
// address streams since the last keyframe take eight times the size of that table, but at most every 16th block does.
// So keyframes add at most an eighth to the addresses.
//
// Some keyframes have the origins of the live blocks too, for slices. Origins are at most a 32nd of the bytes since the
// last such keyframe, which is at least four blocks before. If no addresses are recorded, only these are keyframes.
//
// With two threads, the first encodes the core stream. The second encodes the columns (addresses, times, usable sizes)
// of batches, compresses full blocks, and writes them. So a block's compressed size is known late. With one thread the
// size counts just as late, so that the bytes are the same. The core stream decides where a block ends, so the first
// thread need not wait.

#include "libcmt/trace/file/cmt_sink.h"

#include <algorithm>
#include <cassert>
#include <system_error>
#include <utility>

#include "libcmt/format/coding.h"
#include "libcmt/format/stacks/stack_names.h"

namespace cmt {
namespace {

constexpr std::uint32_t keyframe_blocks_min = 16;
constexpr std::uint64_t keyframe_share = 8;
constexpr std::uint64_t live_block_bytes = 4;
constexpr std::uint32_t origins_blocks_min = 4;
constexpr std::uint64_t origins_share = 32, origins_bytes_min = 64;
constexpr std::size_t waiting_limit = 65536;

}  // namespace

void CmtSink::add_event(const BookedEvent& booked) {
  if (started_ || !begin(booked)) encode(booked);
}

void CmtSink::add_batch(const EventBatch& batch) {
  if (!started_) return Sink::add_batch(batch);
  const std::span<const BlockEvent> events = batch.events();
  const BookedEvent* other = batch.others().data();
  for (std::size_t first = 0; first < events.size();) {
    const std::size_t count = encode_core(events.subspan(first), other);
    assert(count != 0 && core_.events() <= options_.block_events);
    const auto encoded = events.subspan(first, count);
    encode_columns_of(batch, first, count, other);
    const BookedEvent* const other_before = other;
    other += std::count_if(encoded.begin(), encoded.end(), [](const BlockEvent& event) { return event.tag == 0; });
    if (batch.has_times()) note_times(encoded);
    origins_.add_batch(batch, first, count, other_before, stacks_.is_used());
    if (stacks_.is_used()) note_stacks(batch, first, count);
    first += count;
    events_ += count;
    if (!block_is_full()) continue;
    flush_block();
    start_block(first == events.size());  // the live blocks are those after the whole batch
  }
  assert(other == batch.others().data() + batch.others().size());
}

void CmtSink::note_times(std::span<const BlockEvent> events) {
  const auto timed = std::find_if(events.rbegin(), events.rend(), [](auto& event) { return event.time_ns != unknown; });
  if (timed != events.rend()) last_ns_ = timed->time_ns;
}

/// The first thread encodes the stacks, because their table may change while the second thread is at work.
void CmtSink::note_stacks(const EventBatch& batch, std::size_t first, std::size_t count) {
  const bool has_any = !batch.stacks().empty();
  const BookedEvent* other = batch.others().data();
  for (std::size_t i = 0; i < first + count; ++i) {
    const BlockEvent& event = batch.events()[i];
    const Kind kind = event.tag != 0 ? event.kind : other++->event.kind;
    if (i >= first) stacks_.add(kind, has_any ? batch.stacks()[i] : 0);
  }
}

void CmtSink::use_stacks(const StackTable& stacks) {
  if (!stacks_.is_used() && started_) flush();  // in a block, all events have stacks or none has
  stacks_.use(stacks);
}

std::size_t CmtSink::room() const { return started_ ? options_.block_events - core_.events() : 1; }

/// Keeps an event that is before the first allocation. Returns false if the event is that allocation.
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
    encode({event, {}}, false);  // no keyframe: the live blocks include the first allocation already
  }
  waiting_.clear();
}

void CmtSink::encode(const BookedEvent& booked, bool may_begin_keyframe) {
  take_columns_back();
  core_.add(booked.event);
  addresses_.add(booked.event, booked.old.tag != 0 ? &booked.old : nullptr);
  times_.add(booked.event.time_ns);
  usable_.add(booked.event);
  if (stacks_.is_used()) stacks_.add(booked.event.kind, booked.event.stack);
  origins_.add(booked.event, booked.old, stacks_.is_used() ? booked.event.stack : 0);
  if (booked.event.time_ns != unknown) last_ns_ = booked.event.time_ns;
  ++events_;
  if (!block_is_full()) return;
  flush_block();
  start_block(may_begin_keyframe);
}

/// Encodes events until the block is full. Returns how many. `other` is the first of those that are not in short form.
std::size_t CmtSink::encode_core(std::span<const BlockEvent> events, const BookedEvent* other) {
  for (std::size_t i = 0;;) {
    i += core_.add_short(events.subspan(i));
    if (i == events.size() || core_.full()) return i;
    const BlockEvent& event = events[i++];
    core_.add(event.tag != 0 ? event.event() : other++->event);
    if (core_.full()) return i;
  }
}

/// Encodes the addresses, times and usable sizes of the same events, or has the thread do it.
void CmtSink::encode_columns_of(const EventBatch& batch, std::size_t first, std::size_t count,
                                const BookedEvent* other) {
  if (!thread_) return encode_columns(batch.events().subspan(first, count), other, batch.has_times());
  assert(column_tasks_.size() > TaskThread::capacity);  // so the thread has no task for this place any more
  ColumnTask& task = column_tasks_[next_column_task_++ % column_tasks_.size()];
  task.batch.assign(batch);
  task.first = first;
  task.count = count;
  task.first_other = static_cast<std::size_t>(other - batch.others().data());
  has_thread_columns_ = true;
  thread_->post([this, &task] {
    encode_columns(task.batch.events().subspan(task.first, task.count), task.batch.others().data() + task.first_other,
                   task.batch.has_times());
  });
}

/// After this, this thread may encode columns.
void CmtSink::take_columns_back() {
  if (!has_thread_columns_) return;
  thread_->wait_for_all();
  has_thread_columns_ = false;
}

void CmtSink::encode_columns(std::span<const BlockEvent> events, const BookedEvent* other, bool has_times) {
  constexpr std::size_t ahead = 12;
  std::size_t made = 0;  // blocks since the last event that is not in short form
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
}

void CmtSink::start_block(bool may_be_keyframe) {
  block_ =
      format::BlockHeader{.first_event = events_, .core = core_.state(), .time_ns = last_ns_ != unknown ? last_ns_ : 0};
  core_.reset(block_.core);
  assert(core_.events() == 0);
  block_.keyframe = events_ == 0 || (may_be_keyframe && keyframe_is_due());
  live_table_.clear();
  origins_stream_.clear();
  if (!block_.keyframe) return;
  if (events_ != 0) put_tables();
  if (last_) last_->counts = false;
  if (has_thread_columns_) {
    thread_->post([this] { addresses_.reset(); });
  } else {
    addresses_.reset();
  }
  blocks_since_keyframe_ = 0;
  address_bytes_since_keyframe_ = 0;
}

void CmtSink::put_tables() {
  const std::vector<LiveBlock> live = live_.list_live_blocks();
  assert(std::ranges::is_sorted(live, {}, &LiveBlock::tag));
  live_table_ = format::put_live(live);
  if (!origins_are_due()) return;
  origins_stream_ = origins_.put(live, last_ns_,
                                 [this](StackId stack) { return stacks_.is_used() ? stacks_.stack_number(stack) : 0; });
  origins_written_ = live.size();
  if (last_) last_->counts_for_origins = false;
  blocks_since_origins_ = 0;
  bytes_since_origins_ = 0;
}

bool CmtSink::keyframe_is_due() const {
  if (taker_.take) return taker_.wants_keyframe();
  if (!has_addresses_) return origins_are_due();
  return blocks_since_keyframe_ >= keyframe_blocks_min &&
         address_bytes_since_keyframe_ > keyframe_share * live_block_bytes * live_.live_blocks();
}

/// Whether the origins of the live blocks are small enough.
bool CmtSink::origins_are_due() const {
  const std::uint64_t live = live_.live_blocks();
  return origins_.is_kept() && live <= origins_max && blocks_since_origins_ >= origins_blocks_min &&
         bytes_since_origins_ > origins_share * (origins_bytes_min + live * bytes_per_origin_);
}

void CmtSink::compress(FullBlock& block) {
  for (const auto& [id, raw] : block.streams) {
    const std::string_view frame = compressor_.compress(raw);
    block.header.streams.push_back({static_cast<std::uint64_t>(id), raw.size(), frame.size()});
    block.body += frame;
    if (id == format::StreamId::addresses) block.address_bytes = frame.size();
    const bool is_for_origins = id == format::StreamId::live && block.origins != 0 && !has_addresses_;
    if (id == format::StreamId::origins || is_for_origins) block.origin_bytes += frame.size();
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
  block.header.pools = core_.pools();
  block.streams.emplace_back(format::StreamId::core, core_.finish());
  if (!live_table_.empty()) block.streams.emplace_back(format::StreamId::live, std::move(live_table_));
  if (!origins_stream_.empty()) {
    block.streams.emplace_back(format::StreamId::origins, std::move(origins_stream_));
    block.origins = origins_written_;
  }
  ++blocks_since_keyframe_;
  ++blocks_since_origins_;
  block.stack_numbers = stacks_.finish_numbers();
  block.pool_stacks = stacks_.finish_pool_numbers();
  if (stacks_.is_used()) block.frame_names = format::put_frame_names(stacks_);
  block.stack_nodes = stacks_.finish_definitions();
  if (!has_thread_columns_) finish_columns(block);
  const auto write_block = [this, is_finished = !has_thread_columns_] {
    if (!is_finished) finish_columns(*last_);
    compress(*last_);
    write(*last_);
  };
  if (thread_) {
    last_written_ = thread_->post(write_block);
  } else {
    write_block();
  }
}

void CmtSink::finish_columns(FullBlock& block) {
  const auto add = [&](format::StreamId id, std::string raw) {
    if (!raw.empty()) block.streams.emplace_back(id, std::move(raw));
  };
  add(format::StreamId::addresses, addresses_.finish());
  add(format::StreamId::times, times_.finish());
  add(format::StreamId::usable, usable_.finish());
  add(format::StreamId::stacks, std::move(block.stack_numbers));
  add(format::StreamId::pool_stacks, std::move(block.pool_stacks));
  add(format::StreamId::stack_nodes, std::move(block.stack_nodes));
  add(format::StreamId::frame_names, std::move(block.frame_names));
}

/// Notes in the file header which streams the first block has.
void CmtSink::note_recorded(const format::BlockHeader& block) {
  header_.has_addresses = block.has(format::StreamId::addresses);
  header_.has_times = block.has(format::StreamId::times);
  header_.has_usable = block.has(format::StreamId::usable);
  header_.has_stacks = block.has(format::StreamId::stacks) || block.has(format::StreamId::pool_stacks);
}

void CmtSink::write(FullBlock& block) {
  if (taker_.take) return taker_.take(block);
  if (!header_written_) note_recorded(block.header);
  put_header();
  assert(index_.empty() || index_.back().first_event < block.header.first_event);
  index_.push_back(block.header.start_at(output_.offset()));
  output_.write(format::put_section(format::SectionType::block, block.header.put(),
                                    static_cast<std::uint32_t>(block.body.size())));
  output_.write(block.body);
}

/// Waits until the last full block is written, and counts its size for the next keyframe.
void CmtSink::settle() {
  if (!last_) return;
  if (thread_) thread_->wait_for(last_written_);
  assert(last_->origin_bytes <= last_->body.size());
  if (last_->counts) address_bytes_since_keyframe_ += last_->address_bytes;
  has_addresses_ |= last_->address_bytes != 0;
  if (last_->counts_for_origins) bytes_since_origins_ += last_->body.size() - last_->origin_bytes;
  if (last_->origins != 0) bytes_per_origin_ = last_->origin_bytes / last_->origins + 1;
  last_.reset();
}

void CmtSink::flush() {
  if (!started_) return;
  if (core_.events() != 0) {
    flush_block();
    start_block();
  }
  settle();
}

void CmtSink::end_block() {
  if (!started_ && !waiting_.empty()) start_core(waiting_above_);
  flush();
}

void CmtSink::start_at(const format::CoreState& state) {
  assert(!started_ && waiting_.empty());
  started_ = true;
  core_.reset(state);
  start_block();
}

void CmtSink::append_block(FullBlock block, std::span<const EventStack> stacks) {
  if (!started_) start_at(block.header.core);
  flush();
  assert(core_.events() == 0 && !last_ && !taker_.take);
  for (const EventStack& each : stacks) stacks_.add(each.kind, each.stack);
  const auto add = [&](format::StreamId id, std::string raw) {
    if (!raw.empty()) block.streams.emplace_back(id, std::move(raw));
  };
  add(format::StreamId::stacks, stacks_.finish_numbers());
  add(format::StreamId::pool_stacks, stacks_.finish_pool_numbers());
  std::string frame_names = stacks_.is_used() ? format::put_frame_names(stacks_) : std::string();
  add(format::StreamId::stack_nodes, stacks_.finish_definitions());
  add(format::StreamId::frame_names, std::move(frame_names));
  compress(block);
  block.header.first_event = events_;
  events_ += block.header.events;
  write(block);
}

void CmtSink::use_thread(bool wanted) {
  if (wanted == (thread_ != nullptr)) return;
  if (!wanted) {
    take_columns_back();
    thread_->wait_for_all();
    thread_.reset();
    last_written_ = 0;
    return;
  }
  try {
    thread_ = std::make_unique<TaskThread>();
    column_tasks_.resize(TaskThread::capacity + 1);
  } catch (const std::system_error&) {
    thread_.reset();
  }
}

/// Returns the offset of the section; 0 if the trace needs none.
std::uint64_t CmtSink::write_names() {
  const std::string names = stacks_.is_used() ? format::put_names(stacks_) : std::string();
  if (names.empty()) return 0;
  const std::uint64_t offset = output_.offset();
  const std::string_view frame = compressor_.compress(names);
  std::string header;
  format::put_varint(header, names.size());
  output_.write(format::put_section(format::SectionType::names, header, static_cast<std::uint32_t>(frame.size())));
  output_.write(frame);
  return offset;
}

void CmtSink::finish(const Totals& totals) {
  if (!started_) start_core(waiting_above_);
  flush_block();
  settle();
  take_columns_back();
  put_header();
  const std::uint64_t names_offset = write_names();
  const std::uint64_t index_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::index, format::put_index(index_, names_offset)));
  const std::uint64_t totals_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::totals, format::put_totals(totals)));
  output_.write(format::put_tail(index_offset, totals_offset));
}

}  // namespace cmt
