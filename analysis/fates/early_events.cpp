// Decodes the blocks of the stream before a late start, each at most once, as early_events.h describes.
#include "analysis/fates/early_events.h"

#include <algorithm>
#include <cassert>

#include "toolkit/command/open_trace.h"

namespace cmt::analysis {
namespace {

/// Reads the blocks of the stream that the ends need, in order, each at most once.
class EarlyPass {
 public:
  EarlyPass(Reader reader, const std::string& path, std::uint64_t end, heap::Clock::Unit clock)
      : reader_(std::move(reader)), path_(path), end_(end), clock_(clock) {}

  void complete(std::vector<EarlyEnd>& ends) {
    next_ = ends.data();
    last_ = ends.data() + ends.size();
    while (next_ != last_ || !watched_.empty()) {
      if (watched_.empty()) go_to_block_of(next_->tag);
      const std::span<const Event> events = reader_.read();
      const std::uint64_t left = end_ - std::min(end_, position_);
      if (left == 0 || events.empty()) break;
      for (const Event& event : events.first(std::min<std::uint64_t>(events.size(), left))) take(event);
      position_ = reader_.first_event() + events.size();
    }
    if (next_ != last_) refuse(next_->tag);
  }

 private:
  /// Goes to the block of the stream that made the block. Stays in place if that is the current one.
  void go_to_block_of(Tag tag) {
    assert(watched_.empty());  // else their threads' next events would be missed
    const std::vector<BlockStart>& blocks = reader_.blocks();
    const auto next = std::upper_bound(blocks.begin(), blocks.end(), tag,
                                       [](Tag wanted, const BlockStart& block) { return wanted < block.next_tag; });
    if (next == blocks.begin()) refuse(tag);
    const BlockStart& block = *std::prev(next);
    const std::uint64_t block_end = next == blocks.end() ? unknown : next->first_event;
    if (block_end <= position_ || block.first_event >= end_) refuse(tag);
    if (block.first_event <= position_) return;
    reader_.seek(position_ = block.first_event);
    clock_.start_at(clock_.unit() == heap::Clock::Unit::events ? position_ : block.time_ns);
  }

  void take(const Event& event) {
    clock_.advance_to(event);
    if (!watched_.empty() && is_of_thread(event.kind)) {
      std::erase_if(watched_, [&](EarlyEnd* end) {
        if (end->thread != event.thread) return false;
        end->is_temporary = false;
        return true;
      });
    }
    if (next_ == last_ || event.tag != next_->tag) return;
    next_->born = clock_.now();
    if (next_->is_temporary) watched_.push_back(next_);
    ++next_;
  }

  [[noreturn]] void refuse(Tag tag) const {
    throw FormatError(path_, "origins of block <" + std::to_string(tag) + ">, which no event before them has made");
  }

  Reader reader_;
  const std::string& path_;
  std::uint64_t end_;
  heap::Clock clock_;
  std::uint64_t position_ = 0;  // the next event
  EarlyEnd *next_ = nullptr, *last_ = nullptr;
  std::vector<EarlyEnd*> watched_;  // blocks that are temporary as far as was read
};

}  // namespace

Reader EarlyEvents::open(bool times) const {
  return command::open_trace(path_, {.addresses = false, .times = times, .usable = false});
}

Tag EarlyEvents::find_first_tag() const {
  Reader reader = open(false);
  try {
    return find_first_tag(reader);
  } catch (const FormatError&) {  // the index contains the tag too, unless the events skip some
    return reader.blocks().front().next_tag;
  }
}

Tag EarlyEvents::find_first_tag(Reader& reader) const {
  for (auto events = reader.read(); !events.empty() && reader.first_event() < end_; events = reader.read()) {
    for (const Event& event : events) {
      if (event.tag != 0) return event.tag;
    }
  }
  return 0;
}

std::uint64_t EarlyEvents::last_time_ns() const {
  Reader reader = open(true);
  reader.seek(end_ - 1);
  const std::span<const Event> events = reader.read();
  return events.empty() ? unknown : events.front().time_ns;
}

void EarlyEvents::complete(std::vector<EarlyEnd>& ends) {
  if (ends.empty()) return;
  std::sort(ends.begin(), ends.end(), [](const EarlyEnd& a, const EarlyEnd& b) { return a.tag < b.tag; });
  EarlyPass(open(unit_ == heap::Clock::Unit::time), path_, end_, unit_).complete(ends);
}

}  // namespace cmt::analysis
