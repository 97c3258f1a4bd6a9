/// Sends operations to lanes, with the control words that keep lanes in order (worker/schedule.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cmtreplay/plan/chunks.h"
#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// Counts of a trace's operations.
struct RouteCounts {
  std::uint64_t operations = 0;          ///< calls
  std::uint64_t threads = 1;             ///< threads, each from its start to its end
  std::uint64_t true_dependencies = 0;   ///< calls that need a block of another lane
  std::uint64_t false_dependencies = 0;  ///< points at which a lane may have to wait for the run-ahead window
};

/// Sends each thread's events to a lane, in recorded order, with the control words that their order needs
/// (worker/schedule.h).
///
/// A thread begins with its thread_start, or else with its first call, and ends with its thread_exit. Its lane is then
/// idle. A thread that starts gets the lane that has been idle longest: the lane's last thread has then probably ended,
/// and need not be waited for. The first thread has lane 0, and starts all others. Until there is a second thread, the
/// calls of the first need no order.
///
/// libc frees some blocks, mostly NULL, after a thread's thread_exit. In a trace with thread_start these calls begin no
/// thread: lane 0 makes them. In one without, such as a log of ltrace, the number can be that of a new thread.
class Router {
 public:
  /// `order`: the order of several threads. `count_lane` is called for each lane that takes part in an epoch, lane 0
  /// first. `timed`: words for recorded times are written too.
  Router(LaneWriter& writer, Order order, bool timed, std::function<void(std::uint32_t epoch, bool first)> count_lane);

  Step route(const Event& event);

  /// Prefetches the memory that route() will read for an event. Called some events ahead.
  void prefetch(const Event& event) const {
    if (event.old_tag != 0) planner_.prefetch(event.old_tag);
  }

  /// Called after the last event.
  void finish();

  const Planner& planner() const { return planner_; }
  /// The order so far: one_thread until there is a second thread.
  Order order() const { return order_; }
  const RouteCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t no_epoch = UINT32_MAX;

  struct Lane {
    std::uint32_t epoch = no_epoch;  ///< the epoch that it takes part in
    bool has_thread = false;
    std::uint64_t time_ns = 0;  ///< the time in its last control_time
  };

  bool is_of_second_thread(const Event& event);
  void begin_several();
  Step route_several(const Event& event);
  void append(std::uint32_t lane, const Event& event, const Step& step);
  std::uint32_t lane_for(const Event& event);
  std::uint32_t lane_of(std::uint32_t thread);
  std::uint32_t start_thread(std::uint32_t thread);
  void end_thread(std::uint32_t thread);
  void join_order(std::uint32_t lane);
  void give_turn(std::uint32_t lane);
  void append_time(std::uint32_t lane, const Event& event);
  void end_epoch();
  void append_control(std::uint32_t lane, control_word what, std::uint32_t argument = 0);

  LaneWriter& writer_;
  Order order_ = Order::one_thread;
  Order wanted_order_;
  bool timed_;
  std::function<void(std::uint32_t, bool)> count_lane_;
  Planner planner_;
  RouteCounts counts_;
  std::optional<std::uint32_t> first_thread_;
  std::uint64_t epoch_steps_ = 0;  ///< operations and touches so far; each may release a slot
  std::vector<Lane> lanes_;
  std::deque<std::uint32_t> idle_lanes_;  ///< lanes without a thread; the first has been idle longest
  std::unordered_map<std::uint32_t, std::uint32_t> lane_by_thread_;
  bool has_starts_ = false;                  ///< there has been a thread_start
  std::unordered_set<std::uint32_t> ended_;  ///< threads after their thread_exit
  std::uint32_t last_thread_ = 0, last_lane_ = 0;
  bool last_known_ = false;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> epoch_lanes_;  ///< lanes that take part in `epoch_`
  std::uint32_t turn_ = 0, turn_lane_ = 0;
  std::uint64_t first_ns_ = unknown;
};

}  // namespace cmt::replay
