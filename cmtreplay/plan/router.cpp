#include "cmtreplay/plan/router.h"

#include <stdexcept>

namespace cmt::replay {
namespace {

/// Recorded times are passed on so often at most: a sleep is no more exact.
constexpr std::uint64_t pace_ns = 100'000;
constexpr std::uint32_t lanes_max = 1U << 16;

/// Marks and samples are nobody's.
bool is_of_thread(Kind kind) { return kind != Kind::mark && kind != Kind::sample; }

Planner::Lanes lanes_of(Order order) {
  switch (order) {
    case Order::one_thread:
      return Planner::Lanes::one;
    case Order::strict:
      return Planner::Lanes::in_turn;
    case Order::free:
      break;
  }
  return Planner::Lanes::several;
}

}  // namespace

Router::Router(LaneWriter& writer, Order order, bool paced, std::function<void(std::uint32_t, bool)> count_lane)
    : writer_(writer), order_(order), paced_(paced), count_lane_(std::move(count_lane)), planner_(lanes_of(order)) {
  lanes_.push_back({.alive = true});
  if (order_ == Order::free) begin_epoch();
}

Step Router::route(const Event& event) {
  if (order_ == Order::free && counts_.operations / epoch_operations > epoch_) {
    end_epoch();
    ++epoch_;
    planner_.begin_epoch();
    begin_epoch();
  }
  const std::uint32_t lane = order_ != Order::one_thread && is_of_thread(event.kind) ? lane_of(event.thread) : 0;
  const Step step = planner_.plan(event, lane);
  if (event.kind == Kind::thread_exit && order_ != Order::one_thread) end_life(event.thread);
  if (step.operations == 0) return step;
  if (order_ != Order::one_thread) enter(lane);
  if (paced_) keep_pace(lane, event);
  writer_.append(lane, step.words());
  counts_.operations += step.operations;
  counts_.foreign += step.foreign ? 1 : 0;
  return step;
}

void Router::finish() {
  if (order_ == Order::free) end_epoch();
  for (auto lane = static_cast<std::uint32_t>(lanes_.size()); lane-- > 0;) {
    if (lanes_[lane].alive) control(lane, control_end);
  }
}

std::uint32_t Router::lane_of(std::uint32_t thread) {
  if (last_known_ && thread == last_thread_) return last_lane_;
  const auto known = lane_by_thread_.find(thread);
  last_lane_ = known != lane_by_thread_.end() ? known->second : start_life(thread);
  last_thread_ = thread;
  last_known_ = true;
  return last_lane_;
}

std::uint32_t Router::start_life(std::uint32_t thread) {
  std::uint32_t lane = 0;
  if (!lane_by_thread_.empty() || counts_.lives > 1) {
    if (left_.empty()) {
      if (lanes_.size() == lanes_max) throw std::length_error("more than 65,536 threads live at once");
      left_.push_back(static_cast<std::uint32_t>(lanes_.size()));
      lanes_.emplace_back();
    }
    lane = left_.front();
    left_.pop_front();
    lanes_[lane].alive = true;
    ++counts_.lives;
    enter(0);
    control(0, control_start, lane);
  }
  lane_by_thread_[thread] = lane;
  return lane;
}

/// The first thread stays: the process would end with it.
void Router::end_life(std::uint32_t thread) {
  const std::uint32_t lane = lane_of(thread);
  if (lane == 0) return;
  if (order_ == Order::free && lanes_[lane].epoch == epoch_) {
    control(lane, control_epoch_end, epoch_);
    lanes_[lane].epoch = no_epoch;
    std::erase(in_epoch_, lane);
  }
  if (order_ == Order::strict) take_turn(0);
  control(lane, control_exit);
  lanes_[lane].alive = false;
  left_.push_back(lane);
  lane_by_thread_.erase(thread);
  last_known_ = false;
}

/// What has to stand in front of an operation.
void Router::enter(std::uint32_t lane) {
  if (order_ == Order::strict) return take_turn(lane);
  if (lanes_[lane].epoch == epoch_) return;
  lanes_[lane].epoch = epoch_;
  in_epoch_.push_back(lane);
  count_lane_(epoch_, in_epoch_.size() == 1);
  control(lane, control_epoch_begin, epoch_);
  ++counts_.fences;
}

void Router::take_turn(std::uint32_t lane) {
  if (lane == turn_lane_) return;
  control(turn_lane_, control_pass_turn);
  control(lane, control_await_turn, ++turn_);
  turn_lane_ = lane;
  ++counts_.turns;
}

void Router::keep_pace(std::uint32_t lane, const Event& event) {
  if (event.time_ns == unknown) return;
  if (first_ns_ == unknown) first_ns_ = event.time_ns;
  const std::uint64_t now_ns = event.time_ns - first_ns_;
  if (event.time_ns < first_ns_ || now_ns < lanes_[lane].paced_ns + pace_ns) return;
  lanes_[lane].paced_ns = now_ns;
  const std::array<std::uint64_t, 2> words{operation_word(operation_control, control_pace, 0), now_ns};
  writer_.append(lane, words);
}

/// Lane 0 takes part in each, so that an epoch is not over before all of its lanes are known.
void Router::begin_epoch() { enter(0); }

void Router::end_epoch() {
  for (const std::uint32_t lane : in_epoch_) {
    control(lane, control_epoch_end, epoch_);
    lanes_[lane].epoch = no_epoch;
  }
  in_epoch_.clear();
}

void Router::control(std::uint32_t lane, control_word what, std::uint32_t argument) {
  writer_.append(lane, operation_word(operation_control, what, argument));
}

}  // namespace cmt::replay
