#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "cmtreplay/plan/lane_writer.h"
#include "cmtreplay/plan/planner.h"

namespace cmt::replay {

/// In which order the threads' calls are replayed.
enum class Order {
  one_thread,  ///< all on one thread, as recorded
  free,        ///< on their own threads, which wait for each other's blocks alone
  strict       ///< on their own threads, one call at a time, as recorded
};

/// What the words of a trace came to.
struct RouteCounts {
  std::uint64_t operations = 0;  ///< calls, in words of operations
  std::uint64_t lives = 1;       ///< threads, each from its start to its end
  std::uint64_t foreign = 0;     ///< true dependencies: calls that need a block of another lane
  std::uint64_t fences = 0;      ///< false ones: places at which a lane may have to wait for the run-ahead window
  std::uint64_t turns = 0;       ///< passed, in strict order
};

/// Sends events to lanes: each thread's to its own, in recorded order, with what their order needs between them
/// (schedule.h). A thread's life begins with its thread_start, or else its first call, and ends with its thread_exit. A
/// lane that a life has left is free for the next; the one left longest ago comes first, so that nobody waits for a
/// thread that is about to end. The first thread has lane 0, and starts all others.
class Router {
 public:
  /// `count_lane` is told of each lane that takes part in an epoch, lane 0 first. `paced`: recorded times go along.
  Router(LaneWriter& writer, Order order, bool paced, std::function<void(std::uint32_t epoch, bool first)> count_lane);

  Step route(const Event& event);

  /// After the last event.
  void finish();

  const Planner& planner() const { return planner_; }
  const RouteCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t no_epoch = UINT32_MAX;

  struct Lane {
    std::uint32_t epoch = no_epoch;  ///< that it takes part in
    bool alive = false;
    std::uint64_t paced_ns = 0;  ///< the recorded time that it was last told
  };

  std::uint32_t lane_of(std::uint32_t thread);
  std::uint32_t start_life(std::uint32_t thread);
  void end_life(std::uint32_t thread);
  void enter(std::uint32_t lane);
  void take_turn(std::uint32_t lane);
  void keep_pace(std::uint32_t lane, const Event& event);
  void begin_epoch();
  void end_epoch();
  void control(std::uint32_t lane, control_word what, std::uint32_t argument = 0);

  LaneWriter& writer_;
  Order order_;
  bool paced_;
  std::function<void(std::uint32_t, bool)> count_lane_;
  Planner planner_;
  RouteCounts counts_;
  std::vector<Lane> lanes_;
  std::deque<std::uint32_t> left_;  ///< lanes without a life, the one left longest ago first
  std::unordered_map<std::uint32_t, std::uint32_t> lane_by_thread_;
  std::uint32_t last_thread_ = 0, last_lane_ = 0;
  bool last_known_ = false;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> in_epoch_;  ///< lanes that take part in it
  std::uint32_t turn_ = 0, turn_lane_ = 0;
  std::uint64_t first_ns_ = unknown;
};

}  // namespace cmt::replay
