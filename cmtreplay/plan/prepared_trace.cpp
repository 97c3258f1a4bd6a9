// Preparing costs time and memory once, and all runs of all allocators share them: the worker maps the same operations.
//
// A trace of one thread needs no order between lanes, and its slots are reused at once. Whether it is of one thread is
// known at its second thread's first event; then the pass begins anew, for several.
//
// To say at which event an allocator crashed, a lane's position has to be led back to its event. The same events make
// the same words, so they are made once more, up to there: paid for a crash alone.
#include "cmtreplay/plan/prepared_trace.h"

#include <algorithm>
#include <map>
#include <optional>

namespace cmt::replay {
namespace {

constexpr std::size_t mark_count = 100;

}  // namespace

/// One pass, in one order.
class PreparedTrace::Pass {
 public:
  Pass(PreparedTrace& trace, Order order)
      : trace_(trace),
        order_(order),
        chunks_(std::make_unique<PreparedChunks>(trace.options_.prepared_bytes_max)),
        writer_(*chunks_),
        router_(writer_, order, trace.options_.paced, [this](std::uint32_t epoch, bool) {
          if (epoch >= epochs_.size()) epochs_.resize(epoch + 1);
          ++epochs_[epoch];
        }) {}

  /// False: there is a second thread, and it was to be one.
  bool run(bool watches, const std::function<void(const Reader&)>& progress) {
    Reader reader = trace_.open_();
    trace_.format_ = reader.header().format;
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const Event& event : events) {
        if (watches && watch_.sees_second(event)) return false;
        take(event);
      }
      progress(reader);
    }
    facts_.defects = reader.defects();
    facts_.truncated = reader.truncated();
    finish();
    return true;
  }

 private:
  /// Whether a trace has a second thread.
  class ThreadWatch {
   public:
    bool sees_second(const Event& event) {
      if (event.kind == Kind::mark || event.kind == Kind::sample) return false;
      if (!first_) first_ = event.thread;
      return event.thread != *first_;
    }

   private:
    std::optional<std::uint32_t> first_;
  };

  void take(const Event& event);
  void count(const Event& event, const Step& step);
  void finish();
  void set_moment(Mark& mark) const;
  Mark moment() const;

  PreparedTrace& trace_;
  Order order_;
  std::unique_ptr<PreparedChunks> chunks_;
  LaneWriter writer_;
  std::vector<std::uint32_t> epochs_;
  Router router_;
  ThreadWatch watch_;
  MarkKeeper keeper_;
  Mark peak_;  ///< of live bytes
  TraceFacts facts_;
  std::uint64_t pointers_ = 0;
  std::uint64_t first_ns_ = unknown, last_ns_ = unknown;
};

void PreparedTrace::Pass::take(const Event& event) {
  const Step step = router_.route(event);
  count(event, step);
  pointers_ += step.keeps_pointer ? 1 : 0;
  if (keeper_.wants(facts_.events)) keeper_.keep(moment());
  if (facts_.peak_live_bytes_event == facts_.events) set_moment(peak_);
}

void PreparedTrace::Pass::count(const Event& event, const Step& step) {
  ++facts_.events;
  ++facts_.by_kind[static_cast<std::size_t>(event.kind)];
  facts_.calls += step.operations != 0 ? 1 : 0;
  facts_.failed_calls += step.outcome == Outcome::failed ? 1 : 0;
  facts_.unknown_blocks += step.outcome == Outcome::unknown ? 1 : 0;
  facts_.other_events += step.outcome == Outcome::other ? 1 : 0;
  facts_.sized_frees += step.sized ? 1 : 0;
  if (event.time_ns != unknown) {
    if (first_ns_ == unknown) first_ns_ = event.time_ns;
    last_ns_ = event.time_ns;
  }
  const Live& live = router_.planner().live();
  facts_.peak_live.blocks = std::max(facts_.peak_live.blocks, live.blocks);
  if (live.bytes <= facts_.peak_live.bytes) return;
  facts_.peak_live.bytes = live.bytes;
  facts_.peak_live_bytes_event = facts_.events;
}

/// Into a mark that is there: the peak moves often, and its memory is used again.
void PreparedTrace::Pass::set_moment(Mark& mark) const {
  mark.event = facts_.events;
  mark.live = router_.planner().live();
  mark.time_ns = last_ns_;
  mark.positions.clear();
  if (!chunks_->whole()) return;
  for (std::uint32_t lane = 0; lane < writer_.lanes(); ++lane) mark.positions.push_back(writer_.position(lane));
}

Mark PreparedTrace::Pass::moment() const {
  Mark mark;
  set_moment(mark);
  return mark;
}

void PreparedTrace::Pass::finish() {
  facts_.end_live = router_.planner().live();
  if (first_ns_ != unknown && last_ns_ >= first_ns_) facts_.recorded_ns = last_ns_ - first_ns_;
  trace_.marks_ = keeper_.choose(mark_count, moment());
  if (peak_.event != 0) include_mark(trace_.marks_, peak_);
  trace_.end_slots_ = router_.planner().live_slots();
  router_.finish();
  trace_.order_ = order_;
  trace_.facts_ = facts_;
  trace_.counts_ = router_.counts();
  trace_.lanes_ = writer_.lanes();
  trace_.slots_ = router_.planner().slots();
  trace_.pointers_ = pointers_;
  trace_.epochs_ = std::move(epochs_);
  for (std::uint32_t lane = 0; lane < writer_.lanes(); ++lane) {
    trace_.first_chunks_.push_back(writer_.first_chunk(lane));
    trace_.ends_.push_back(writer_.position(lane));
  }
  trace_.chunks_ = std::move(chunks_);
}

PreparedTrace::PreparedTrace(Open open, const TraceOptions& options, const std::function<void(const Reader&)>& progress)
    : open_(std::move(open)), options_(options) {
  if (Pass(*this, Order::one_thread).run(options.threads, progress)) return;
  Pass(*this, options.strict ? Order::strict : Order::free).run(false, progress);
}

std::uint64_t PreparedTrace::operations_bytes() const {
  return std::uint64_t{chunks_->count()} * chunk_words * sizeof(std::uint64_t);
}

std::vector<std::uint64_t> PreparedTrace::events_at(const std::vector<Place>& places, Order order) const {
  std::vector<std::uint64_t> numbers(places.size(), 0);
  std::map<std::uint32_t, std::multimap<std::uint64_t, std::size_t>> wanted;  // of each lane, by position
  for (std::size_t i = 0; i < places.size(); ++i) wanted[places[i].lane].emplace(places[i].position, i);
  NoChunks chunks;
  LaneWriter writer(chunks);
  Router router(writer, order, options_.paced, [](std::uint32_t, bool) {});
  Reader reader = open_();
  std::uint64_t number = 0;
  for (auto events = reader.read(); !events.empty() && !wanted.empty(); events = reader.read()) {
    for (const Event& event : events) {
      ++number;
      router.route(event);
      for (auto& [lane, places_in_it] : wanted) {
        while (lane < writer.lanes() && !places_in_it.empty() && writer.position(lane) > places_in_it.begin()->first) {
          numbers[places_in_it.begin()->second] = number;
          places_in_it.erase(places_in_it.begin());
        }
      }
    }
    std::erase_if(wanted, [](const auto& lane) { return lane.second.empty(); });
  }
  return numbers;
}

}  // namespace cmt::replay
