// Writing a .cmt: the header once it is known, a block each time one is full, index and totals at the end.
//
// Two things are known late. The first tag is the first allocation's, so events before it wait (they are few: frees of
// blocks from before the recording began). And whether addresses or times are recorded at all is seen in the first
// block, so the file header is written with it.
//
// A keyframe costs its table of live blocks, some 4 bytes each compressed. It is due when the address streams since the
// last one have cost eight times that, and at most every 16th block: then keyframes are a tenth of the addresses at
// worst.

#include "trace/cmt_sink.h"

#include <algorithm>

namespace cmt {
namespace {

constexpr std::uint32_t keyframe_blocks_min = 16;
constexpr std::uint64_t keyframe_share = 8;
constexpr std::uint64_t live_block_bytes = 4;
constexpr std::size_t waiting_limit = 65536;

}  // namespace

void CmtSink::add(const Event& event, const format::LiveBlock* old) {
  if (started_) return encode(event, old);
  if (event.tag != 0) {
    start_core(event.tag);
    return encode(event, old);
  }
  waiting_above_ = std::max(waiting_above_, event.old_tag + 1);
  waiting_.emplace_back(event, event.label);
  if (waiting_.size() == waiting_limit) start_core(waiting_above_);
}

void CmtSink::start_core(Tag next_tag) {
  started_ = true;
  core_.reset({.next_tag = next_tag});
  start_block();
  for (auto& [event, label] : waiting_) {
    event.label = label;
    encode(event, nullptr);
  }
  waiting_.clear();
}

void CmtSink::encode(const Event& event, const format::LiveBlock* old) {
  core_.add(event);
  addresses_.add(event, old);
  times_.add(event);
  usable_.add(event);
  ++events_;
  if (core_.events() == options_.block_events || core_.full()) {
    flush_block();
    start_block();
  }
}

void CmtSink::start_block() {
  block_ = format::BlockHeader{.first_event = events_, .core = core_.state(), .time_ns = times_.last_ns()};
  core_.reset(block_.core);
  block_.keyframe = index_.empty() || keyframe_is_due();
  live_table_.clear();
  if (!block_.keyframe) return;
  if (!index_.empty()) live_table_ = format::put_live(live_);
  addresses_.reset();
  blocks_since_keyframe_ = 0;
  address_bytes_since_keyframe_ = 0;
}

bool CmtSink::keyframe_is_due() const {
  return blocks_since_keyframe_ >= keyframe_blocks_min &&
         address_bytes_since_keyframe_ > keyframe_share * live_block_bytes * live_.size();
}

void CmtSink::add_stream(format::StreamId id, const std::string& raw) {
  if (raw.empty()) return;
  const std::string frame = compressor_.compress(raw);
  block_.streams.push_back({static_cast<std::uint64_t>(id), raw.size(), frame.size()});
  body_ += frame;
}

void CmtSink::put_header() {
  if (header_written_) return;
  header_written_ = true;
  output_.write(format::put_file_header(header_));
}

void CmtSink::flush_block() {
  block_.events = core_.events();
  if (block_.events == 0) return;
  body_.clear();
  add_stream(format::StreamId::core, core_.finish());
  add_stream(format::StreamId::live, live_table_);
  const std::string addresses = addresses_.finish();
  const std::string times = times_.finish();
  const std::string usable = usable_.finish();
  if (!header_written_) {
    header_.has_addresses = !addresses.empty();
    header_.has_times = !times.empty();
    header_.has_usable = !usable.empty();
  }
  put_header();
  add_stream(format::StreamId::addresses, addresses);
  if (!addresses.empty()) address_bytes_since_keyframe_ += block_.streams.back().size;
  ++blocks_since_keyframe_;
  add_stream(format::StreamId::times, times);
  add_stream(format::StreamId::usable, usable);
  index_.push_back({output_.offset(), block_.first_event, block_.core.next_tag, block_.time_ns, block_.keyframe});
  output_.write(
      format::put_section(format::SectionType::block, block_.put(), static_cast<std::uint32_t>(body_.size())));
  output_.write(body_);
}

void CmtSink::finish(const Totals& totals) {
  if (!started_) start_core(waiting_above_);
  flush_block();
  put_header();
  const std::uint64_t index_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::index, format::put_index(index_)));
  const std::uint64_t totals_offset = output_.offset();
  output_.write(format::put_section(format::SectionType::totals, format::put_totals(totals)));
  output_.write(format::put_tail(index_offset, totals_offset));
}

}  // namespace cmt
