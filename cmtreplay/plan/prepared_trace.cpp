// Plans the trace. Planning costs time once for all runs of all allocators. One thread decodes the trace (ReadAhead),
// and another one plans it.
//
// To name the event at which an allocator crashed, events_at() has to trace a lane's position back to its event. Equal
// events make equal words, so it plans the trace again up to that position. Only a crash costs that time.
#include "cmtreplay/plan/prepared_trace.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "cmtreplay/plan/teardown.h"
#include "cmtreplay/plan/written_pages/assumed_writes.h"
#include "cmtreplay/protocol.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/trace/read_ahead.h"

namespace cmt::replay {
namespace {

constexpr double golden_ratio = 0.6180339887;
constexpr std::size_t mark_count = 100, time_mark_count = 50 /* of them, if the trace has times */;

/// At different events, in their order.
[[maybe_unused]] bool are_ordered(const std::vector<Mark>& marks) {
  const auto is_not_after = [](const Mark& a, const Mark& b) { return a.event >= b.event; };
  return std::adjacent_find(marks.begin(), marks.end(), is_not_after) == marks.end();
}

/// How many candidates for marks may be kept: as many as asked for, or so many that their positions take some 4 MB.
std::size_t kept_of(std::size_t wanted, std::size_t lanes) {
  constexpr std::size_t positions_max = 512 * 1024, least = 256;
  return std::max(std::min(wanted, positions_max / std::max<std::size_t>(lanes, 1)), least);
}

/// Reads the trace, if it has touched pages.
std::shared_ptr<const PageUses> learn_uses(Reader trace) {
  auto uses = std::make_shared<PageUses>(trace.header().touched_min());
  if (uses->touched_min() == 0) return uses;
  for (auto events = trace.read(); !events.empty(); events = trace.read())
    for (const Event& event : events) uses->learn(event);
  uses->finish();
  return uses;
}

}  // namespace

void MarkCandidates::add(Mark moment) {
  assert(wants(moment.event) && (kept_.empty() || kept_.back().event < moment.event));
  const std::size_t kept = kept_of(kept_max, moment.positions.size());
  kept_.push_back(std::move(moment));
  if (kept_.size() < kept) return;
  distance_ *= 2;
  std::erase_if(kept_, [this](const Mark& mark) { return !wants(mark.event); });
}

std::vector<Mark> MarkCandidates::choose(std::size_t count, Mark end) const {
  std::vector<Mark> marks;
  for (std::size_t part = 1; part < count; ++part) {
    const auto event = static_cast<std::uint64_t>(static_cast<double>(end.event) * static_cast<double>(part) /
                                                  static_cast<double>(count));
    const auto after =
        std::upper_bound(kept_.begin(), kept_.end(), event, [](auto at, const Mark& mark) { return at < mark.event; });
    if (after == kept_.begin()) continue;
    if (marks.empty() || marks.back().event < std::prev(after)->event) marks.push_back(*std::prev(after));
  }
  if (end.event != 0 && (marks.empty() || marks.back().event < end.event)) marks.push_back(std::move(end));
  assert(are_ordered(marks) && marks.size() <= count);
  return marks;
}

void TimeMarks::add(Mark moment) {
  assert(wants(moment.time_ns, moment.next_ns));
  const std::size_t kept = kept_of(kept_max, moment.positions.size());
  kept_.push_back(std::move(moment));
  while (kept_.size() >= kept && shift_ < 63) {
    ++shift_;
    std::erase_if(kept_, [this](const Mark& mark) { return !wants(mark.time_ns, mark.next_ns); });
  }
}

std::vector<Mark> TimeMarks::choose(std::size_t count, std::uint64_t end_ns) const {
  std::vector<Mark> marks;
  for (std::size_t part = 0; part < count; ++part) {
    double whole = 0;
    const double place = std::modf(0.5 + golden_ratio * static_cast<double>(part), &whole);  // from 0 to 1
    const double share = (static_cast<double>(part) + place) / static_cast<double>(count);
    const auto wanted_ns = begin_ns_ + static_cast<std::uint64_t>(share * static_cast<double>(end_ns - begin_ns_));
    const auto after = std::upper_bound(kept_.begin(), kept_.end(), wanted_ns,
                                        [](auto at, const Mark& mark) { return at < mark.time_ns; });
    if (after == kept_.begin()) continue;
    if (marks.empty() || marks.back().event < std::prev(after)->event) marks.push_back(*std::prev(after));
  }
  assert(are_ordered(marks) && marks.size() <= count);
  return marks;
}

void include_mark(std::vector<Mark>& marks, const Mark& moment) {
  const auto after =
      std::lower_bound(marks.begin(), marks.end(), moment.event, [](const Mark& m, auto at) { return m.event < at; });
  assert(are_ordered(marks));
  if (after == marks.end() || after->event == moment.event) return;
  const bool has_before = after != marks.begin();
  const bool before_is_nearer = has_before && moment.event - std::prev(after)->event <= after->event - moment.event;
  if (before_is_nearer || (has_before && std::next(after) == marks.end()))
    *std::prev(after) = moment;
  else if (std::next(after) == marks.end())
    marks.insert(after, moment);
  else
    *after = moment;
}

void add_mark(std::vector<Mark>& marks, const Mark& moment) {
  const auto after =
      std::lower_bound(marks.begin(), marks.end(), moment.event, [](const Mark& m, auto at) { return m.event < at; });
  if (after == marks.end() || after->event != moment.event)
    marks.insert(after, moment);
  else if (moment.next_ns != unknown)
    after->next_ns = moment.next_ns;
}

/// The one pass over the events that fills in the plan.
class PreparedTrace::Pass {
 public:
  Pass(PreparedTrace& trace, Order order)
      : trace_(trace),
        chunks_(std::make_unique<PreparedChunks>(trace.options_.prepared_bytes_max)),
        writer_(*chunks_),
        writes_(trace.page_uses_),
        router_(writer_, order, trace.options_.timed, [this](std::uint32_t epoch, bool) {
          if (epoch >= plan_.epochs.size()) plan_.epochs.resize(epoch + 1);
          ++plan_.epochs[epoch];
        }) {}

  void run(const Progress& progress) {
    Reader trace = trace_.open();
    plan_.format = trace.header().format;
    is_slice_ = trace.header().find("slice").has_value();
    plan_.facts.touched_min = trace.header().touched_min();
    plan_.facts.allocator = trace.header().find("allocator").value_or("");
    trace::BatchReader batches(trace);
    trace::ReadAhead reader(batches);
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (i + fetched < events.size()) {
          __builtin_prefetch(&events[i + fetched]);
          __builtin_prefetch(&events[i + fetched].stack);
        }
        if (i + prefetched < events.size()) router_.prefetch(events[i + prefetched]);
        plan_event(events[i]);
      }
      progress(reader.batch().bytes_read, reader.batch().bytes_total);
    }
    plan_.facts.defects = trace.defects();
    plan_.facts.truncated = trace.truncated();
    plan_.facts.lost_events = command::lost_events(trace.header(), trace.repairs());
    plan_.stretches = trace.stretches();
    if (!plan_.stretches.empty() && !trace.header().find("slice")) {
      RunStretch sum;
      for (const RunStretch& stretch : plan_.stretches) sum += stretch;
      plan_.facts.recorded_cpu_ns = sum.ran_ns;
    }
    plan_.processors =
        static_cast<std::uint32_t>(std::atoi(std::string(trace.header().find("processors").value_or("1")).c_str()));
    finish();
  }

 private:
  static constexpr std::size_t prefetched = 8;  ///< events ahead whose block is prefetched
  static constexpr std::size_t fetched = 24;    ///< events ahead that are prefetched from the other thread's cache

  void plan_event(const Event& recorded);
  void note_time(std::uint64_t time_ns);
  void begin_mean(std::uint64_t time_ns);
  void count(const Event& event, const Step& step);
  void finish();
  void find_teardown(const Mark& end);
  void set_to_now(Mark& mark) const;

  PreparedTrace& trace_;
  TracePlan plan_;
  std::unique_ptr<PreparedChunks> chunks_;
  LaneWriter writer_;
  AssumedWrites writes_;
  Router router_;
  MarkCandidates candidates_;
  TimeMarks time_marks_;
  Mark peak_;           ///< the moment with the most live bytes
  bool rises_ = false;  ///< the last event made a new peak, which peak_ does not have yet
  std::uint64_t first_ns_ = unknown, last_ns_ = unknown;
  bool is_slice_ = false;
  double touched_area_ = 0;  ///< bytes times ns, since the begin of time_marks_
};

/// Plans an event. A peak is noted when it is over: while a program grows, each event is a new peak.
void PreparedTrace::Pass::plan_event(const Event& recorded) {
  note_time(recorded.time_ns);
  const Event& event = writes_.plan(recorded);
  const bool grows = traits(event.kind).allocates && !traits(event.kind).releases && event.tag != 0 && event.size != 0;
  if (rises_ && !grows) {
    set_to_now(peak_);
    rises_ = false;
  }
  const Step step = router_.route(event);
  count(event, step);
  if (is_slice_ && event.kind == Kind::mark && event.label.starts_with("slice ")) begin_mean(last_ns_);
  plan_.pointers += step.keeps_pointer ? 1 : 0;
  plan_.requests += step.keeps_pointer && event.bytes() != 0 ? 1 : 0;
  if (!candidates_.wants(plan_.facts.events)) return;
  Mark now;
  set_to_now(now);
  candidates_.add(std::move(now));
}

/// At the first event with a time. A slice begins with its live blocks, at the times when they were made, and then
/// again at its mark.
void PreparedTrace::Pass::begin_mean(std::uint64_t time_ns) {
  time_marks_ = TimeMarks(time_ns);
  touched_area_ = 0;
}

/// Adds the state since the last event to the mean of touched bytes, and to the candidates for time marks. To be called
/// before the event at `time_ns` is planned.
void PreparedTrace::Pass::note_time(std::uint64_t time_ns) {
  if (time_ns == unknown || last_ns_ == unknown) return;
  const std::uint64_t touched = router_.planner().live().bytes - writes_.unwritten_bytes();
  touched_area_ += static_cast<double>(time_ns - last_ns_) * static_cast<double>(touched);
  if (!time_marks_.wants(last_ns_, time_ns)) return;
  Mark now;
  set_to_now(now);
  now.next_ns = time_ns;
  time_marks_.add(std::move(now));
}

void PreparedTrace::Pass::count(const Event& event, const Step& step) {
  TraceFacts& facts = plan_.facts;
  ++facts.events;
  ++facts.by_kind[static_cast<std::size_t>(event.kind)];
  facts.calls += step.operations != 0 ? 1 : 0;
  facts.failed_calls += step.outcome == Outcome::failed ? 1 : 0;
  facts.unknown_blocks += step.outcome == Outcome::unknown ? 1 : 0;
  facts.other_events += step.outcome == Outcome::other ? 1 : 0;
  facts.sized_frees += step.sized ? 1 : 0;
  facts.touch_events += step.outcome == Outcome::touch ? 1 : 0;
  facts.discard_events += step.outcome == Outcome::discard ? 1 : 0;
  facts.give_back_calls += step.outcome == Outcome::give_back ? 1 : 0;
  facts.give_back_left_out += step.outcome == Outcome::give_back_left_out ? 1 : 0;
  if (event.time_ns != unknown) {
    if (first_ns_ == unknown) {
      first_ns_ = event.time_ns;
      begin_mean(first_ns_);
    }
    last_ns_ = event.time_ns;
  }
  const heap::LiveTotals& live = router_.planner().live();
  facts.peak_live.blocks = std::max(facts.peak_live.blocks, live.blocks);
  facts.peak_touched_bytes = std::max(facts.peak_touched_bytes, live.bytes - writes_.unwritten_bytes());
  if (live.bytes <= facts.peak_live.bytes) return;
  facts.peak_live.bytes = live.bytes;
  facts.peak_live_bytes_event = facts.events;
  writes_.note_peak();
  rises_ = true;
}

/// Sets an existing mark. The peak moves often, and so its memory is used again.
void PreparedTrace::Pass::set_to_now(Mark& mark) const {
  mark.event = plan_.facts.events;
  mark.live = router_.planner().live();
  mark.time_ns = last_ns_;
  mark.untouched_bytes = writes_.unwritten_bytes();
  mark.positions.clear();
  for (std::uint32_t lane = 0; lane < writer_.lanes(); ++lane) mark.positions.push_back(writer_.position(lane));
}

void PreparedTrace::Pass::finish() {
  const Planner& planner = router_.planner();
  plan_.facts.end_live = planner.live();
  plan_.facts.unknown_bytes = writes_.unknown_bytes_at_peak();
  plan_.facts.left_out_bytes = writes_.left_out_bytes_at_peak();
  if (first_ns_ != unknown && last_ns_ >= first_ns_) plan_.facts.recorded_ns = last_ns_ - first_ns_;
  if (rises_) set_to_now(peak_);
  plan_.begin_ns = first_ns_;
  Mark end;
  set_to_now(end);
  std::vector<Mark> time_marks;
  if (plan_.facts.recorded_ns != unknown && time_marks_.begin_ns() < last_ns_) {
    time_marks = time_marks_.choose(time_mark_count, last_ns_);
    plan_.facts.mean_touched_bytes =
        static_cast<std::uint64_t>(touched_area_ / static_cast<double>(last_ns_ - time_marks_.begin_ns()));
  }
  plan_.marks = candidates_.choose(mark_count - time_marks.size(), end);
  if (peak_.event != 0) include_mark(plan_.marks, peak_);
  find_teardown(end);
  for (const Mark& mark : time_marks) add_mark(plan_.marks, mark);
  plan_.end_slots = planner.live_slots();
  router_.finish();
  plan_.order = router_.order();
  plan_.counts = router_.counts();
  plan_.lanes = writer_.lanes();
  plan_.slots = planner.slots();
  for (std::uint32_t lane = 0; lane < writer_.lanes(); ++lane) {
    plan_.first_chunks.push_back(writer_.first_chunk(lane));
    plan_.ends.push_back(writer_.position(lane));
  }
  assert(plan_.marks.empty() || plan_.marks.back().event == plan_.facts.events);
  assert(plan_.end_slots.size() == plan_.facts.end_live.blocks);
  trace_.plan_ = std::move(plan_);
  trace_.chunks_ = std::move(chunks_);
}

/// The moments are those after which memory could be measured: some 4,096 to 8,192, and the peak.
void PreparedTrace::Pass::find_teardown(const Mark& end) {
  std::vector<Mark> marks = candidates_.kept();
  if (peak_.event != 0) add_mark(marks, peak_);
  add_mark(marks, end);
  std::vector<LiveMoment> moments;
  for (const Mark& mark : marks) {
    const std::uint64_t time_ns = mark.time_ns == unknown ? first_ns_ : mark.time_ns;
    moments.push_back({plan_.facts.recorded_ns == unknown ? mark.event : time_ns, mark.live.bytes});
  }
  const std::optional<std::size_t> found = last_before_teardown(moments);
  if (!found || marks[*found].event == 0) return;
  plan_.facts.before_teardown_event = marks[*found].event;
  plan_.facts.before_teardown_live_bytes = marks[*found].live.bytes;
  add_mark(plan_.marks, marks[*found]);
}

PreparedTrace::PreparedTrace(Open open, const TraceOptions& options, const Progress& progress)
    : open_(std::move(open)), options_(options), page_uses_(learn_uses(open_(Stacks::no))) {
  const Order order = options.strict ? Order::strict : Order::free;
  Pass(*this, options.threads ? order : Order::one_thread).run(progress);
}

std::uint64_t PreparedTrace::operations_bytes() const {
  return chunks_->kept() ? std::uint64_t{chunks_->count()} * chunk_words * sizeof(std::uint64_t) : 0;
}

/// Prepares a trace once more, only to know where each event's operations end up.
struct PreparedTrace::Retrace {
  Retrace(const PreparedTrace& trace, Order order)
      : router(writer, order, trace.options_.timed, [](std::uint32_t, bool) {}),
        reader(trace.open()),
        writes(trace.page_uses_) {}

  void route(const Event& event) { router.route(writes.plan(event)); }

  PreparedChunks chunks{0};
  LaneWriter writer{chunks};
  Router router;
  Reader reader;
  AssumedWrites writes;
};

std::vector<std::uint64_t> PreparedTrace::events_at(const std::vector<OperationPosition>& positions,
                                                    Order order) const {
  std::vector<std::uint64_t> numbers(positions.size(), 0);
  std::map<std::uint32_t, std::multimap<std::uint64_t, std::size_t>>
      wanted;  // by lane and words: the index in `positions`
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i].words != finding_at_end) wanted[positions[i].lane].emplace(positions[i].words, i);
  }
  Retrace again(*this, order);
  const LaneWriter& writer = again.writer;
  std::uint64_t number = 0;
  for (auto events = again.reader.read(); !events.empty() && !wanted.empty(); events = again.reader.read()) {
    for (const Event& event : events) {
      ++number;
      again.route(event);
      for (auto& [lane, in_lane] : wanted) {
        while (lane < writer.lanes() && !in_lane.empty() && writer.position(lane) > in_lane.begin()->first) {
          numbers[in_lane.begin()->second] = number;
          in_lane.erase(in_lane.begin());
        }
      }
    }
    std::erase_if(wanted, [](const auto& lane) { return lane.second.empty(); });
  }
  return numbers;
}

StopPoint PreparedTrace::stop_point(std::uint64_t event) const {
  if (event > plan_.facts.events + 1)
    throw std::runtime_error("--until: the trace has " + output::counted(plan_.facts.events, "event") +
                             "; one more stops at its end");
  StopPoint point{.event = plan_.facts.events + 1, .before = {}, .after = {}};
  Retrace again(*this, plan_.order);
  const LaneWriter& writer = again.writer;
  const auto set_to_now = [&writer](Mark& mark, std::uint64_t events) {
    mark.event = events;
    mark.positions.clear();
    for (std::uint32_t lane = 0; lane < writer.lanes(); ++lane) mark.positions.push_back(writer.position(lane));
  };
  std::uint64_t number = 0;
  for (auto events = again.reader.read(); !events.empty(); events = again.reader.read()) {
    for (const Event& next : events) {
      if (++number >= event) set_to_now(point.before, number - 1);
      again.route(next);
      if (number < event) continue;
      set_to_now(point.after, number);
      for (std::uint32_t lane = 0; lane < writer.lanes(); ++lane) {
        const bool is_new = lane >= point.before.positions.size() && point.after.positions[lane] != 0;
        if (is_new ||
            (lane < point.before.positions.size() && point.after.positions[lane] != point.before.positions[lane])) {
          point.event = number;
          point.lane = lane;  // the last one: lane 0 may only start the thread of the event
        }
      }
      if (point.event == number) return point;
    }
  }
  set_to_now(point.before, number);
  point.after = point.before;
  return point;
}

}  // namespace cmt::replay
