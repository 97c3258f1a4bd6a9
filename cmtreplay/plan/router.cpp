// Opens lanes, epochs and turns as threads start, call and end.
#include "cmtreplay/plan/router.h"

#include <cassert>
#include <stdexcept>

namespace cmt::replay {
namespace {

/// The least distance between two recorded times in a lane. A sleep is not more exact than that, and allocators that
/// purge by the clock count in milliseconds.
constexpr std::uint64_t time_distance_ns = 100'000;
constexpr std::uint32_t lanes_max = 1U << 16;

}  // namespace

Router::Router(LaneWriter& writer, Order order, bool timed, std::function<void(std::uint32_t, bool)> count_lane)
    : writer_(writer), wanted_order_(order), timed_(timed), count_lane_(std::move(count_lane)) {
  lanes_.push_back({.has_thread = true});
}

Step Router::route(const Event& event) {
  if (order_ == Order::one_thread && is_of_second_thread(event)) begin_several();
  if (order_ != Order::one_thread) return route_several(event);
  const Step step = planner_.plan(event);
  if (step.size != 0) append(0, event, step);
  return step;
}

bool Router::is_of_second_thread(const Event& event) {
  if (event.thread == first_thread_ || wanted_order_ == Order::one_thread || !is_of_thread(event.kind)) return false;
  if (first_thread_) return true;
  first_thread_ = event.thread;
  return false;
}

/// Begins the order of several threads. From now on free slots have to be empty.
void Router::begin_several() {
  assert(first_thread_ && wanted_order_ != Order::one_thread);
  order_ = wanted_order_;
  epoch_steps_ = 0;
  lane_by_thread_[*first_thread_] = 0;
  append_control(0, control_several);
  for (const std::uint32_t slot : planner_.begin_several(order_))
    writer_.append(0, operation_word(operation_take_block, slot, 0));
  if (order_ == Order::free) join_order(0);
}

Step Router::route_several(const Event& event) {
  if (order_ == Order::free && epoch_steps_ / epoch_operations > epoch_) {
    end_epoch();
    ++epoch_;
    planner_.begin_epoch();
    join_order(0);  // the epoch must not end before all of its lanes are known
  }
  const std::uint32_t lane = lane_for(event);
  assert(lane < lanes_.size() && lanes_[lane].has_thread);
  const Step step = planner_.plan(event, lane);
  if (event.kind == Kind::thread_exit) end_thread(event.thread);
  if (step.size == 0) return step;
  join_order(lane);
  append(lane, event, step);
  return step;
}

void Router::append(std::uint32_t lane, const Event& event, const Step& step) {
  if (timed_) append_time(lane, event);
  writer_.append(lane, step.words());
  counts_.operations += step.operations;
  epoch_steps_ += step.outcome == Outcome::touch || step.outcome == Outcome::discard ? 1 : step.operations;
  counts_.true_dependencies += step.foreign ? 1 : 0;
}

void Router::finish() {
  if (order_ == Order::free) end_epoch();
  for (auto lane = static_cast<std::uint32_t>(lanes_.size()); lane-- > 0;) {
    if (lanes_[lane].has_thread) append_control(lane, control_end);
  }
  writer_.finish();
}

/// The lane that carries out an event. Pages are touched and given back by the lane that has their block or, if that
/// lane has no thread any more, by lane 0.
std::uint32_t Router::lane_for(const Event& event) {
  if (event.kind == Kind::thread_start) {
    has_starts_ = true;
    ended_.erase(event.thread);
  }
  if (is_of_thread(event.kind)) return lane_of(event.thread);
  if (!is_about_pages(event.kind)) return 0;
  const std::uint32_t lane = planner_.lane_of(event.old_tag).value_or(0);
  return lanes_[lane].has_thread ? lane : 0;
}

std::uint32_t Router::lane_of(std::uint32_t thread) {
  if (last_known_ && thread == last_thread_) return last_lane_;
  const auto known = lane_by_thread_.find(thread);
  if (known == lane_by_thread_.end() && has_starts_ && ended_.contains(thread)) return 0;  // no thread begins
  last_lane_ = known != lane_by_thread_.end() ? known->second : start_thread(thread);
  last_thread_ = thread;
  last_known_ = true;
  return last_lane_;
}

std::uint32_t Router::start_thread(std::uint32_t thread) {
  if (idle_lanes_.empty()) {
    if (lanes_.size() == lanes_max)
      throw std::length_error("more than 65,536 threads live at once; --threads=1 replays all calls on one thread");
    idle_lanes_.push_back(static_cast<std::uint32_t>(lanes_.size()));
    lanes_.emplace_back();
  }
  const std::uint32_t lane = idle_lanes_.front();
  idle_lanes_.pop_front();
  assert(lane != 0 && !lanes_[lane].has_thread);
  lanes_[lane].has_thread = true;
  ++counts_.threads;
  join_order(0);
  append_control(0, control_start, lane);
  lane_by_thread_[thread] = lane;
  return lane;
}

/// Ends a thread. The first one does not end: the process would end with it.
void Router::end_thread(std::uint32_t thread) {
  const std::uint32_t lane = lane_of(thread);
  if (lane == 0) return;
  assert(lanes_[lane].has_thread);
  if (order_ == Order::free && lanes_[lane].epoch == epoch_) {
    append_control(lane, control_epoch_end, epoch_);
    lanes_[lane].epoch = no_epoch;
    std::erase(epoch_lanes_, lane);
  }
  if (order_ == Order::strict) give_turn(0);
  append_control(lane, control_exit);
  lanes_[lane].has_thread = false;
  idle_lanes_.push_back(lane);
  lane_by_thread_.erase(thread);
  ended_.insert(thread);
  last_known_ = false;
}

/// Writes the control words that the order needs before an operation.
void Router::join_order(std::uint32_t lane) {
  if (order_ == Order::strict) return give_turn(lane);
  assert(order_ == Order::free);
  if (lanes_[lane].epoch == epoch_) return;
  assert(lanes_[lane].epoch == no_epoch);
  lanes_[lane].epoch = epoch_;
  epoch_lanes_.push_back(lane);
  count_lane_(epoch_, epoch_lanes_.size() == 1);
  append_control(lane, control_epoch_begin, epoch_);
  ++counts_.false_dependencies;
}

void Router::give_turn(std::uint32_t lane) {
  assert(order_ == Order::strict);
  if (lane == turn_lane_) return;
  append_control(turn_lane_, control_pass_turn);
  append_control(lane, control_await_turn, ++turn_);
  turn_lane_ = lane;
}

void Router::append_time(std::uint32_t lane, const Event& event) {
  if (event.time_ns == unknown) return;
  if (first_ns_ == unknown) first_ns_ = event.time_ns;
  const std::uint64_t now_ns = event.time_ns - first_ns_;
  if (event.time_ns < first_ns_ || now_ns < lanes_[lane].time_ns + time_distance_ns) return;
  lanes_[lane].time_ns = now_ns;
  const std::array<std::uint64_t, 2> words{operation_word(operation_control, control_time, 0), now_ns};
  writer_.append(lane, words);
}

void Router::end_epoch() {
  for (const std::uint32_t lane : epoch_lanes_) {
    assert(lanes_[lane].epoch == epoch_);
    append_control(lane, control_epoch_end, epoch_);
    lanes_[lane].epoch = no_epoch;
  }
  epoch_lanes_.clear();
}

void Router::append_control(std::uint32_t lane, control_word what, std::uint32_t argument) {
  assert(lane < lanes_.size());
  writer_.append(lane, operation_word(operation_control, what, argument));
}

}  // namespace cmt::replay
