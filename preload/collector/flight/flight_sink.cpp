// Feeds the kept blocks from the encoder of a usual .cmt, and decides when a keyframe is cheap enough to begin a group.

#include "preload/collector/flight/flight_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "libcmt/trace/files.h"
#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {
namespace {

/// A keyframe takes at most this share of the time, or of the time that encoding the events takes.
constexpr std::uint64_t keyframe_share = 16, events_per_live_block = 4;

constexpr int numbers_max = 100000;

/// Creates the first numbered file that does not exist, and stores its path in `path`. The created name has `part` at
/// the end of its name, too.
int create_numbered(const std::string& trace, std::string& path, const std::string& part = "") {
  const std::string ending = std::filesystem::path(trace).extension();
  const std::string begin = trace.substr(0, trace.size() - ending.size()) + ".kept.";
  int fd = -1;
  for (int number = 1; number <= numbers_max; ++number) {
    path = begin + std::to_string(number) + ending;
    if (!part.empty() && ::access(path.c_str(), F_OK) == 0) continue;
    fd = ::open((path + part).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  return fd;
}

}  // namespace

FlightSink::FlightSink(Output& output, Header header, const LiveBlockSource& live, std::string folder,
                       FlightLimits limits)
    : output_(output),
      header_(std::move(header)),
      live_(live),
      encoder_(nowhere_, header_, {.level = 1}, live),
      blocks_(std::move(folder), limits) {
  encoder_.hand_over_blocks(
      {[this](FullBlock& block) { take(block); }, [this] { return std::exchange(wants_keyframe_, false); }});
}

void FlightSink::take(FullBlock& block) {
  const std::size_t events = block.header.events, with_stacks = std::min(events, event_stacks_.size());
  events_in_blocks_ += events;
  assert(events_in_blocks_ <= events_ && (stacks_ == nullptr || with_stacks == events));
  blocks_.put(block, std::span(event_stacks_).first(with_stacks));
  event_stacks_.erase(event_stacks_.begin(), event_stacks_.begin() + static_cast<std::ptrdiff_t>(with_stacks));
}

void FlightSink::add_event(const BookedEvent& booked) {
  EventBatch batch;
  batch.next_other() = booked;
  batch.append_next_other();
  add_batch(batch);
}

void FlightSink::add_batch(const EventBatch& batch) {
  if (stacks_ != nullptr) note_stacks(batch);
  blocks_.count(batch);
  events_ += batch.size();
  encoder_.add_batch(batch);
  if (events_ - events_in_blocks_ < blocks_.block_events_max()) return;
  if (!begin_group_if_due()) encoder_.flush();
}

void FlightSink::note_stacks(const EventBatch& batch) {
  const bool has_any = !batch.stacks().empty();
  const BookedEvent* other = batch.others().data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const BlockEvent& event = batch.events()[i];
    const Kind kind = event.tag != 0 ? event.kind : other++->event.kind;
    event_stacks_.push_back({kind, has_any ? batch.stacks()[i] : 0});
  }
}

std::size_t FlightSink::room() const {
  const std::uint64_t used = events_ - events_in_blocks_, most = blocks_.block_events_max();
  return std::min<std::size_t>(encoder_.room(), most > used ? most - used : 1);
}

void FlightSink::note_clock(std::uint64_t ns, const Repairs& repairs) {
  blocks_.set_clock(ns);
  repairs_ = repairs;
  begin_group_if_due();
}

/// Begins a group if the newest one has its eighth, unless the unfinished block has no event yet. Returns whether it
/// did.
bool FlightSink::begin_group_if_due() {
  const bool is_cheap = blocks_.group_ns() >= keyframe_share * keyframe_ns_ ||
                        blocks_.group_events() >= events_per_live_block * live_.live_blocks();
  if (!is_cheap || !blocks_.is_group_full()) return false;
  const std::uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  wants_keyframe_ = true;
  encoder_.flush();
  const bool has_begun = !std::exchange(wants_keyframe_, false);
  if (has_begun) blocks_.begin_group(repairs_);
  keyframe_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
  return has_begun;
}

FlightSpan FlightSink::write(Output& output, const Repairs& repairs, bool truncated, bool goes_on) {
  encoder_.end_block();
  Header header = header_;
  if (!memory_.empty()) header.metadata.emplace_back("memory", memory_);
  return blocks_.write(output, std::move(header), stacks_, repairs, truncated, goes_on);
}

void FlightSink::finish(const Totals& totals) { finished_ = write(output_, totals.repairs, totals.truncated); }

WrittenFlight write_over(std::string path, const std::string& trace, FlightSink& kept, const Repairs& repairs) {
  constexpr const char* part = ".part";
  const int fd = path.empty()
                     ? create_numbered(trace, path, part)
                     : ::open((path + part).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  WrittenFlight written{.path = path, .span = {}};
  try {
    Output output(fd);
    written.span = kept.write(output, repairs, false, true);
    if (::rename((path + part).c_str(), path.c_str()) != 0)
      throw std::system_error(errno, std::generic_category(), path);
  } catch (...) {
    ::unlink((path + part).c_str());
    ::close(fd);
    throw;
  }
  ::close(fd);
  return written;
}

WrittenFlight write_beside(const std::string& trace, FlightSink& kept, const Repairs& repairs) {
  WrittenFlight written;
  const int fd = create_numbered(trace, written.path);
  lock_against_readers(fd);
  try {
    Output output(fd);
    written.span = kept.write(output, repairs, false, true);
  } catch (...) {
    ::unlink(written.path.c_str());
    ::close(fd);
    throw;
  }
  ::close(fd);
  return written;
}

}  // namespace cmt::collector
