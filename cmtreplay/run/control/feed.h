/// Feeds a worker with operations: from memory, through a ring, or planned while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/plan/written_pages/assumed_writes.h"
#include "cmtreplay/run/control/control_region.h"

namespace cmt::replay {

/// Gives a worker its operations, up to a mark or to the end.
class Feed {
 public:
  virtual ~Feed() = default;

  /// The sizes of the control region that the feed needs.
  virtual ControlSizes sizes() const = 0;
  /// Fills in the epochs, and remembers the region for publishing.
  virtual void attach(ControlRegion& region) = 0;
  virtual const ChunkSource& chunks() const = 0;

  /// Publish all operations before a mark, or all that are left.
  virtual void publish_until(const Mark& mark) = 0;
  virtual void publish_rest() = 0;
};

/// Publishes the operations of a trace that is prepared in memory. The worker maps them whole.
class PreparedFeed : public Feed {
 public:
  explicit PreparedFeed(const PreparedTrace& trace) : trace_(trace) {}

  ControlSizes sizes() const override;
  void attach(ControlRegion& region) override;
  const ChunkSource& chunks() const override { return trace_.chunks(); }
  void publish_until(const Mark& mark) override;
  void publish_rest() override;

 private:
  const PreparedTrace& trace_;
  ControlRegion* region_ = nullptr;
};

/// Hands operations to the worker through a ring of 1 MiB and a chunk for each lane. It publishes words a quarter of
/// the ring at a time: a worker that is faster than its parent then sleeps seldom and runs long.
///
/// When the worker has carried out all published words, there is always room in the ring, since each lane then uses at
/// most one chunk.
class RingFeed : public Feed {
 public:
  void attach(ControlRegion& region) override;
  const ChunkSource& chunks() const override { return ring_; }

 protected:
  static constexpr std::uint32_t ring_chunks = 128;

  /// `when_full` is called while no chunk is free. All words so far are then published.
  RingFeed(const PreparedTrace& trace, std::function<void()> when_full);

  virtual void publish() = 0;

  const PreparedTrace& trace_;
  std::function<void()> when_full_;
  ChunkRing ring_;
  ControlRegion* region_ = nullptr;
};

/// Copies the operations of a prepared trace into the ring, from memory or from its file.
class CopyingFeed : public RingFeed {
 public:
  CopyingFeed(const PreparedTrace& trace, std::function<void()> when_full)
      : RingFeed(trace, std::move(when_full)), lanes_(trace.plan().lanes) {}

  ControlSizes sizes() const override;
  void attach(ControlRegion& region) override;
  void publish_until(const Mark& mark) override { copy_until(mark.positions); }
  void publish_rest() override { copy_until(trace_.plan().ends); }

 private:
  struct Lane {
    std::uint32_t first_chunk = 0;   ///< in the ring
    std::uint64_t chunks = 0;        ///< in the ring so far
    std::uint64_t* words = nullptr;  ///< the words of the last chunk
    std::uint32_t used = 0;
    std::uint64_t end = 0;     ///< the lane's words in the ring so far
    std::uint64_t wanted = 0;  ///< the words to publish
  };

  void copy_until(const std::vector<std::uint64_t>& positions);
  void copy_chunk();
  void publish() override;

  std::vector<Lane> lanes_;
  std::uint32_t next_ = 0;       ///< the next chunk of the trace
  std::size_t lanes_short_ = 0;  ///< lanes of which not all wanted words are in the ring
};

/// Plans the trace again while the worker runs, if operations could not be kept, or are wanted in another order.
class PlanningFeed : public RingFeed {
 public:
  PlanningFeed(const PreparedTrace& trace, Order order, std::function<void()> when_full);

  ControlSizes sizes() const override;
  void attach(ControlRegion& region) override;
  void publish_until(const Mark& mark) override;
  void publish_rest() override;

 private:
  void route_until(std::uint64_t event);
  void publish() override;

  Order order_;
  LaneWriter writer_;
  AssumedWrites writes_;
  std::optional<Router> router_;
  Reader reader_;
  std::span<const Event> batch_;
  std::uint64_t event_ = 0;
  std::uint64_t published_operations_ = 0;
};

/// Publishes the words of a lane up to a position, and wakes its thread if it waits for them.
void publish(lane& lane, std::uint32_t first_chunk, std::uint64_t position);

}  // namespace cmt::replay
