// Makes batches in short form of a source's events, and lists the live blocks at a keyframe although the source is
// ahead.

#include "libcmt/trace/writer/booked_writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <utility>

namespace cmt {
namespace {

/// Whether a BlockEvent can express an event and the block that it was given.
bool is_short(const Event& event, const LiveBlock& given) {
  const KindTraits& kind = traits(event.kind);
  constexpr std::uint64_t limit = std::numeric_limits<std::uint32_t>::max();
  if (event.alignment != 0 || event.usable != unknown || kind.counts || kind.labels || kind.names) return false;
  if (event.size > limit) return false;
  if (event.tag != 0) return !kind.releases;
  return given.tag != 0 && !kind.allocates && given.size <= limit && given.address == event.old_address;
}

}  // namespace

BookedWriter::BookedWriter(int fd, Header header, const WriteOptions& options, const Source& source)
    : source_(source), output_(fd), sink_(make_sink(output_, std::move(header), options, *this)) {}

void BookedWriter::add(std::span<const Event> events) {
  events_ = events;
  given_ = source_.given();
  assert(given_.size() == events.size());
  for (added_ = 0; added_ < events.size();) {
    fill_batch();
    tally_.count(batch_);
    sink_->add_batch(batch_);
  }
  events_ = {};
}

/// Makes a batch of the next events, as many as the sink has room for.
void BookedWriter::fill_batch() {
  batch_.clear();
  has_times_ = false;
  const std::size_t room = std::min({sink_->room(), EventBatch::capacity, events_.size() - added_});
  assert(room != 0);
  for (std::size_t i = 0; i < room; ++i, ++added_) append(events_[added_], given_[added_]);
  if (!has_times_) batch_.forget_times();
}

void BookedWriter::append(const Event& event, const LiveBlock& given) {
  newest_ = std::max(newest_, event.tag);
  has_times_ |= event.time_ns != unknown;
  if (!is_short(event, given)) {
    batch_.next_other() = {event, given};
    return batch_.append_next_other();
  }
  const bool makes = event.tag != 0;
  assert(makes || given.tag == event.old_tag);
  if (event.stack != 0 || !batch_.stacks().empty()) batch_.stack_room()[0] = event.stack;
  batch_.room()[0] = {.address = makes ? event.address : given.address,
                      .tag = makes ? event.tag : given.tag,
                      .time_ns = event.time_ns,
                      .block_size = static_cast<std::uint32_t>(makes ? event.size : given.size),
                      .size = static_cast<std::uint32_t>(event.size),
                      .thread = event.thread,
                      .kind = event.kind,
                      .makes_block = makes};
  batch_.append(1);
}

/// The source is ahead: its live blocks are the ones after its last read(). So this drops the blocks that later events
/// make, and adds the blocks that later events end.
std::vector<LiveBlock> BookedWriter::list_live_blocks() const {
  std::vector<LiveBlock> blocks = source_.list_live_blocks();
  std::erase_if(blocks, [this](const LiveBlock& block) { return block.tag > newest_; });
  for (std::size_t i = added_; i < events_.size(); ++i) {
    const LiveBlock& given = given_[i];
    if (given.tag != 0 && given.tag <= newest_ && events_[i].ends_block()) blocks.push_back(given);
  }
  format::sort_by_tag(blocks);
  assert(blocks.size() == live_blocks());
  return blocks;
}

void BookedWriter::finish(const Repairs& repairs, bool truncated, std::vector<RunStretch> stretches,
                          std::uint64_t samples_lost) {
  tally_.totals().repairs = repairs;
  tally_.totals().truncated = truncated;
  tally_.totals().stretches = std::move(stretches);
  tally_.totals().samples_lost = samples_lost;
  sink_->finish(tally_.totals());
}

}  // namespace cmt
