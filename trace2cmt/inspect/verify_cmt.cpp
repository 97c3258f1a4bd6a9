// Checks a whole .cmt, section by section (format-spec/cmt.md), and goes on after a fault. If the start of a section is
// damaged, the check continues at the next block that the index names. If a section cannot be decoded, each further
// block is checked by itself. Tags, addresses, times and totals are then not checked: they depend on missing events.
//
// With two threads, the first reads and decodes. The second checks the events, and reports all faults in their order.
// The decoder passes on the live block that each event was given, so the checks need no table of blocks by tag.

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "libcmt/format/addresses.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/columns.h"
#include "libcmt/format/core.h"
#include "libcmt/format/origins.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/stacks/stack_names.h"
#include "libcmt/format/stacks/stack_streams.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/file/origin_table.h"
#include "libcmt/trace/task_thread.h"
#include "toolkit/output/numbers.h"
#include "trace2cmt/inspect/verify.h"

namespace cmt::trace2cmt {
namespace {

using namespace cmt::format;

/// The live blocks of a decoder.
class DecodedBlocks : public cmt::LiveBlockSource {
 public:
  explicit DecodedBlocks(const LiveBlocks& live) : live_(live) {}

  std::size_t live_blocks() const override { return live_.size(); }
  std::vector<cmt::LiveBlock> list_live_blocks() const override { return by_tag(live_); }

 private:
  const LiveBlocks& live_;
};

class CmtVerifier {
 public:
  CmtVerifier(const TraceFile& file, unsigned jobs, const ReportFault& report);

  Verdict run();

 private:
  /// Some events of a block, for the checks.
  struct Batch {
    std::vector<cmt::Event> events;
    std::vector<cmt::LiveBlock> given;
    std::uint64_t number = 0;  // of the first event, from 1
    std::uint64_t offset = 0;  // of the section whose events are here now
  };

  void fault(std::uint64_t offset, const std::string& what);
  void report_fault(std::uint64_t offset, const std::string& what);
  std::uint64_t faults_so_far();
  template <class Step>
  void in_order(Step step);
  void check_sections();
  Batch& next_batch();
  void post_batch(std::uint64_t number);
  void check_events(const Batch& batch);
  std::optional<std::uint64_t> check_header();
  std::optional<std::uint64_t> resume_after(std::uint64_t offset) const;
  void find_resume_offsets();
  std::uint64_t check_section(const Section& section);
  void check_block(const Section& section);
  void check_state(const BlockHeader& block);
  bool open_streams(const Section& section, const BlockHeader& block);
  void check_keyframe(const BlockHeader& block);
  void check_origins(const BlockHeader& block);
  bool has_origins(const cmt::BlockStart& keyframe) const;
  void start_stacks(const BlockHeader& block);
  void check_names(const Section& section);
  void decode(const BlockHeader& block);
  void check_index();
  void check_totals();
  void check_tail(const Section& section);
  template <typename Step>
  auto in_stream(StreamId id, const Step& step);

  const TraceFile& file_;
  const ReportFault& report_;
  Verdict verdict_;
  std::vector<std::uint64_t> resume_offsets_;  // of sections, from the index: the check can go on there after damage

  std::uint64_t offset_ = 0;  // of the section that is checked
  bool intact_ = true;        // all events so far could be decoded
  std::uint64_t next_event_ = 0;
  std::uint64_t last_time_ns_ = 0;  // of the events that are checked
  std::uint64_t frames_ = 0;
  std::uint64_t interval_ = 0;           // of sampling, at the trace's start; 0: it has all blocks
  std::optional<CoreState> ended_with_;  // the block before
  std::vector<cmt::BlockStart> blocks_;
  std::optional<Section> index_, totals_, tail_;

  Decompressor decompressor_;
  std::map<StreamId, std::string> streams_;  // the streams of this block, decompressed
  std::map<StreamId, std::uint64_t> frame_offsets_;
  AddressDecoder addresses_;
  TimeDecoder times_;
  UsableDecoder usable_;
  cmt::StackTable stack_table_;
  StackDefinitions definitions_{stack_table_};
  StackNumberDecoder stacks_, pool_stacks_{StackOwner::pools};
  bool has_all_stacks_ = true;  // no block's definitions were damaged
  DecodedBlocks live_{addresses_.live()};
  cmt::OriginTable origins_{cmt::unknown, live_};
  bool checks_origins_ = true;
  std::uint64_t origins_time_ns_ = cmt::unknown;  // of the last event that has one
  std::optional<Section> names_;

  // If there is a thread, these belong to it while it has tasks.
  EventChecks checks_{[this](const std::string& what) {
    report_fault(checked_->offset, "event " + std::to_string(checked_->number + checks_.at()) + ": " + what);
  }};
  const Batch* checked_ = nullptr;

  std::vector<Batch> batches_;
  std::size_t next_batch_ = 0;
  std::unique_ptr<cmt::TaskThread> thread_;
};

CmtVerifier::CmtVerifier(const TraceFile& file, unsigned jobs, const ReportFault& report)
    : file_(file), report_(report), batches_(1) {
  if (jobs < 2) return;
  try {
    thread_ = std::make_unique<cmt::TaskThread>();
    batches_.resize(cmt::TaskThread::capacity + 1);
  } catch (const std::system_error&) {
    thread_.reset();
  }
}

/// Runs a step when all before it are done: on the other thread, if there is one.
template <class Step>
void CmtVerifier::in_order(Step step) {
  if (thread_) {
    thread_->post(std::move(step));
  } else {
    step();
  }
}

void CmtVerifier::fault(std::uint64_t offset, const std::string& what) {
  in_order([this, offset, what] { report_fault(offset, what); });
}

void CmtVerifier::report_fault(std::uint64_t offset, const std::string& what) {
  ++verdict_.faults;
  report_(file_.place(offset), what, 1);
}

/// Waits for the checks of all events so far.
std::uint64_t CmtVerifier::faults_so_far() {
  if (thread_) thread_->wait_for_all();
  return verdict_.faults;
}

Verdict CmtVerifier::run() {
  check_sections();
  faults_so_far();
  verdict_.checked = cmt::output::counted(next_event_, "event") + " in " +
                     cmt::output::counted(blocks_.size(), "block") + ", " + cmt::output::counted(frames_, "frame") +
                     ": checksums, every block by itself, index, totals, tags, addresses, times, stacks";
  return verdict_;
}

void CmtVerifier::check_sections() {
  find_resume_offsets();
  for (auto at = check_header(); at && *at < file_.size();) {
    offset_ = *at;
    if (tail_) {
      fault(offset_, "bytes after the tail");
      break;
    }
    try {
      const auto section = section_at(file_, offset_);
      if (!section) {
        return fault(offset_, "a section is cut off; " + missing_end(next_event_));
      }
      at = check_section(*section);
    } catch (const WireError& error) {
      fault(error.offset(), error.what());
      intact_ = false;
      at = resume_after(offset_);
    }
  }
  if (!tail_ && faults_so_far() == 0) fault(file_.size(), missing_end(next_event_));
  if (index_) check_index();
  if (totals_) check_totals();
}

/// The offset after the file header. Nothing if the header is damaged, because then no later byte can be trusted.
std::optional<std::uint64_t> CmtVerifier::check_header() {
  try {
    const auto size = file_header_size(file_.at(0, 16));
    if (!size || *size > file_.size()) throw WireError(0, "the file header is cut off");
    interval_ = take_file_header(file_.at(0, *size)).sampled();
    checks_.expect_samples(interval_);
    return *size;
  } catch (const WireError& error) {
    fault(error.offset(), error.what());
    return std::nullopt;
  }
}

void CmtVerifier::find_resume_offsets() {
  try {
    if (file_.size() < tail_size || !is_tail(file_.at(file_.size() - tail_size, tail_size))) return;
    const auto tail = section_at(file_, file_.size() - tail_size);
    const auto index = section_at(file_, take_fields(*tail, take_tail).index_offset);
    if (!index || !index->is(SectionType::index)) return;
    const auto blocks = take_fields(*index, take_index);
    for (const cmt::BlockStart& block : blocks) resume_offsets_.push_back(block.offset);
    resume_offsets_.push_back(index->offset);
    checks_origins_ = std::any_of(blocks.begin(), blocks.end(), [this](const auto& each) { return has_origins(each); });
  } catch (const WireError&) {
    // The checks of these sections report the fault.
  }
}

bool CmtVerifier::has_origins(const cmt::BlockStart& keyframe) const {
  if (!keyframe.keyframe || keyframe.first_event == 0) return false;
  const auto section = section_at(file_, keyframe.offset);
  if (!section || !section->is(SectionType::block)) return false;
  const std::vector<StreamStart> streams = take_fields(*section, BlockHeader::take).streams;
  return std::any_of(streams.begin(), streams.end(), [](const StreamStart& stream) {
    return stream.id == static_cast<std::uint64_t>(StreamId::origins);
  });
}

/// The offset of the next section that the index names.
std::optional<std::uint64_t> CmtVerifier::resume_after(std::uint64_t offset) const {
  const auto next = std::upper_bound(resume_offsets_.begin(), resume_offsets_.end(), offset);
  return next == resume_offsets_.end() ? std::nullopt : std::optional(*next);
}

/// Returns the offset of the next section.
std::uint64_t CmtVerifier::check_section(const Section& section) {
  const auto take_once = [&](std::optional<Section>& place, const char* what) {
    if (place) fault(section.offset, std::string("a second section of ") + what);
    place = section;
  };
  switch (static_cast<SectionType>(section.start.type)) {
    case SectionType::block:
      if (index_ || totals_) fault(section.offset, "a block after the index");
      check_block(section);
      break;
    case SectionType::names:
      take_once(names_, "names");
      check_names(section);
      break;
    case SectionType::index:
      take_once(index_, "the index");
      break;
    case SectionType::totals:
      take_once(totals_, "the totals");
      break;
    case SectionType::tail:
      tail_ = section;
      check_tail(section);
      break;
    default:
      break;  // a section of a later version
  }
  return section.end();
}

void CmtVerifier::check_block(const Section& section) {
  const std::uint64_t header_offset = section.offset + SectionStart::size;
  try {
    const BlockHeader block = BlockHeader::take(section.header);
    blocks_.push_back(block.start_at(section.offset));
    if (block.first_event != next_event_ && intact_) fault(section.offset, "blocks are missing before this one");
    intact_ &= block.first_event == next_event_;
    next_event_ = block.first_event + block.events;
    check_state(block);
    ended_with_.reset();
    if (open_streams(section, block)) {
      check_keyframe(block);
      check_origins(block);
      decode(block);
    } else {
      intact_ = false;
    }
  } catch (const WireError& error) {
    fault(streams_.empty() ? header_offset + error.offset() : error.offset(), error.what());
    intact_ = false;
  }
  streams_.clear();
}

/// A block's header repeats the state at the end of the block before, so that the block can be decoded alone.
void CmtVerifier::check_state(const BlockHeader& block) {
  if (blocks_.size() == 1 && !block.keyframe) fault(offset_, "the first block is no keyframe");
  if (!ended_with_) return;
  if (block.core != *ended_with_) fault(offset_, "the block does not begin with what the one before ended with");
  if (intact_ && block.time_ns != last_time_ns_) fault(offset_, "the block's time is not the last one before");
}

/// Decompresses each frame, which verifies its checksum. Returns false if one is damaged.
bool CmtVerifier::open_streams(const Section& section, const BlockHeader& block) {
  bool whole = true;
  std::uint64_t offset = section.end() - section.start.body_size;
  for (const StreamStart& stream : block.streams) {
    if (stream.size > section.end() - offset) throw WireError(section.offset, "the streams do not fit into the body");
    const auto id = static_cast<StreamId>(stream.id);
    if (streams_.contains(id)) fault(section.offset, "a block with two streams of one kind");
    frame_offsets_[id] = offset;
    ++frames_;
    try {
      decompressor_.decompress(file_.at(offset, stream.size), stream.raw_size, streams_[id]);
    } catch (const WireError& error) {
      fault(offset + error.offset(), "stream " + std::to_string(stream.id) + ": " + error.what());
      whole = false;
    }
    offset += stream.size;
  }
  if (offset != section.end()) fault(section.offset, "the sizes of the streams do not add up to the body");
  if (!streams_.contains(StreamId::core)) throw WireError(section.offset, "a block without a core stream");
  return whole;
}

/// Runs a step of decoding a stream. An error in it gets the offset of the stream's frame; its message has the offset
/// in the decompressed stream.
template <typename Step>
auto CmtVerifier::in_stream(StreamId id, const Step& step) {
  try {
    return step();
  } catch (const WireError& error) {
    throw WireError(frame_offsets_[id], "stream " + std::to_string(static_cast<int>(id)) + ": byte " +
                                            std::to_string(error.offset()) + ": " + error.what());
  }
}

/// Checks that the table of a keyframe has the blocks that the events before left alive. The first block needs none,
/// but readers read it.
void CmtVerifier::check_keyframe(const BlockHeader& block) {
  const bool has_table = streams_.contains(StreamId::live);
  if (!block.keyframe || (blocks_.size() == 1 && !has_table)) return;
  if (!has_table) return fault(offset_, "a keyframe without a table of live blocks");
  const std::string stated =
      in_stream(StreamId::live, [&] { return put_live(by_tag(take_live(streams_[StreamId::live]))); });
  if (intact_ && stated != put_live(by_tag(addresses_.live()))) {
    fault(frame_offsets_[StreamId::live], "the table of live blocks is not what the events before left alive");
  }
}

/// Checks that the origins are those of the blocks that the events before left alive, and that their stacks are
/// defined.
void CmtVerifier::check_origins(const BlockHeader& block) {
  if (!streams_.contains(StreamId::origins)) return;
  const auto stated_live = streams_.find(StreamId::live);
  if (!block.keyframe || blocks_.size() == 1 || stated_live == streams_.end())
    return fault(offset_, "origins in a block without a table of live blocks");
  const std::vector<LiveBlock> live = by_tag(take_live(stated_live->second));
  const std::span<const cmt::StackId> stacks =
      has_all_stacks_ && intact_ ? definitions_.stacks() : std::span<const cmt::StackId>();
  const Origins stated =
      in_stream(StreamId::origins, [&] { return take_origins(streams_[StreamId::origins], live, stacks); });
  if (!intact_ || !has_all_stacks_) return;
  const auto itself = [](cmt::StackId stack) { return std::uint64_t{stack}; };
  if (put_origins(stated, itself) == origins_.put(live, origins_time_ns_, itself)) return;
  fault(frame_offsets_[StreamId::origins], "the origins are not those of the blocks that the events before left alive");
}

/// Starts the check of stacks. It is possible as long as the definitions of all blocks before are whole.
void CmtVerifier::start_stacks(const BlockHeader& block) {
  has_all_stacks_ &= intact_;
  if (!has_all_stacks_) return;
  const std::size_t known = definitions_.stacks().size() - 1;
  has_all_stacks_ = false;
  if (streams_.contains(StreamId::stack_nodes)) {
    in_stream(StreamId::stack_nodes, [&] { definitions_.take_block(streams_[StreamId::stack_nodes], block.events); });
  }
  if (streams_.contains(StreamId::frame_names))
    in_stream(StreamId::frame_names, [&] { take_frame_names(streams_[StreamId::frame_names], stack_table_); });
  has_all_stacks_ = true;
  in_stream(StreamId::stacks, [&] { stacks_.start(streams_[StreamId::stacks], definitions_, known); });
  in_stream(StreamId::pool_stacks, [&] { pool_stacks_.start(streams_[StreamId::pool_stacks], definitions_, known); });
}

void CmtVerifier::check_names(const Section& section) {
  const std::uint64_t frame = section.end() - section.start.body_size;
  const std::uint64_t raw_size = take_fields(section, [](std::string_view fields) {
    return Cursor(fields).varint(stream_size_limit, "the size of the names");
  });
  try {
    std::string names;
    decompressor_.decompress(file_.at(frame, section.start.body_size), raw_size, names);
    ++frames_;
    take_names(names, stack_table_);
    if (has_all_stacks_ && intact_) take_unloaded(names, definitions_);
  } catch (const WireError& error) {
    fault(frame, "names: byte " + std::to_string(error.offset()) + ": " + error.what());
  }
}

void CmtVerifier::decode(const BlockHeader& block) {
  auto core = in_stream(StreamId::core, [&] {
    return CoreDecoder(streams_[StreamId::core], block.core, block.events, block.pools, interval_ != 0);
  });
  const auto fill = [&](StreamId id, auto& decoder, std::span<cmt::Event> events) {
    if (!streams_[id].empty()) in_stream(id, [&] { decoder.fill(events); });
  };
  in_stream(StreamId::addresses, [&] { addresses_.start(streams_[StreamId::addresses], block.keyframe); });
  times_.start(streams_[StreamId::times], block.time_ns);
  usable_.start(streams_[StreamId::usable]);
  start_stacks(block);
  std::uint64_t number = block.first_event + 1;
  for (;;) {
    Batch& batch = next_batch();
    const std::size_t count = in_stream(StreamId::core, [&] { return core.next(batch.events); });
    if (count == 0) break;
    const std::span<cmt::Event> events = std::span(batch.events).first(count);
    batch.given.resize(count);
    if (intact_) in_stream(StreamId::addresses, [&] { addresses_.fill(events, batch.given); });
    fill(StreamId::times, times_, events);
    fill(StreamId::usable, usable_, events);
    if (has_all_stacks_) fill(StreamId::stacks, stacks_, events);
    if (has_all_stacks_) fill(StreamId::pool_stacks, pool_stacks_, events);
    if (intact_ && checks_origins_) {
      for (std::size_t i = 0; i < count; ++i) origins_.add(events[i], batch.given[i], events[i].stack);
    }
    if (intact_) post_batch(number);
    number += count;
  }
  ended_with_ = core.state();
  const auto check_end = [&](StreamId id, const auto& decoder) {
    if (!decoder.at_end())
      in_stream(id, [&]() -> void { throw WireError(decoder.offset(), "bytes after the last event"); });
  };
  if (intact_) check_end(StreamId::addresses, addresses_);
  check_end(StreamId::times, times_);
  check_end(StreamId::usable, usable_);
  if (has_all_stacks_) check_end(StreamId::stacks, stacks_);
  if (has_all_stacks_) check_end(StreamId::pool_stacks, pool_stacks_);
}

/// The batch that was used longest ago, whose checks are done. Fields of streams that a section lacks have defaults.
CmtVerifier::Batch& CmtVerifier::next_batch() {
  Batch& batch = batches_[next_batch_ % batches_.size()];
  if (std::exchange(batch.offset, offset_) != offset_ || batch.events.empty()) batch.events.assign(1024, {});
  return batch;
}

/// Has the events of the next batch checked.
void CmtVerifier::post_batch(std::uint64_t number) {
  Batch& batch = batches_[next_batch_++ % batches_.size()];
  assert(batch.given.size() <= batch.events.size());
  const std::span events = std::span(batch.events).first(batch.given.size());
  const auto timed = std::find_if(events.rbegin(), events.rend(),
                                  [](const cmt::Event& event) { return event.time_ns != cmt::unknown; });
  if (timed != events.rend()) last_time_ns_ = origins_time_ns_ = timed->time_ns;
  batch.number = number;
  in_order([this, &batch] { check_events(batch); });
}

void CmtVerifier::check_events(const Batch& batch) {
  checked_ = &batch;
  checks_.check(std::span(batch.events).first(batch.given.size()), batch.given);
}

void CmtVerifier::check_index() {
  try {
    if (take_fields(*index_, take_index) != blocks_) {
      fault(index_->offset, "the index does not name the blocks that there are");
    }
    if (take_fields(*index_, take_names_offset) != (names_ ? names_->offset : 0)) {
      fault(index_->offset, "the index does not say where the names are");
    }
  } catch (const WireError& error) {
    fault(error.offset(), error.what());
  }
}

void CmtVerifier::check_totals() {
  try {
    const cmt::Totals stated = take_fields(*totals_, take_totals);
    if (!intact_) return;
    faults_so_far();
    for (const std::string& difference : differences(stated, checks_.totals())) fault(totals_->offset, difference);
  } catch (const WireError& error) {
    fault(error.offset(), error.what());
  }
}

void CmtVerifier::check_tail(const Section& section) {
  const Tail tail = take_tail(section.header);
  if (!index_ || tail.index_offset != index_->offset) fault(section.offset, "no index where the tail says");
  if (!totals_ || tail.totals_offset != totals_->offset) fault(section.offset, "no totals where the tail says");
}

}  // namespace

Verdict verify_cmt(const TraceFile& file, unsigned jobs, const ReportFault& report) {
  return CmtVerifier(file, jobs, report).run();
}

}  // namespace cmt::trace2cmt
