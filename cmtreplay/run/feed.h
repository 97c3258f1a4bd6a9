#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/run/control_region.h"

namespace cmt::replay {

/// Gives a worker its operations, up to a mark or to the end.
class Feed {
 public:
  virtual ~Feed() = default;

  /// The sizes that it needs of the control region.
  virtual ControlSizes sizes() const = 0;
  /// Fills in the epochs, and remembers the region for publishing.
  virtual void attach(ControlRegion& region) = 0;
  virtual const ChunkSource& chunks() const = 0;

  /// Publishes all operations before a mark, or all.
  virtual void publish_until(const Mark& mark) = 0;
  virtual void publish_rest() = 0;
};

/// The operations of a prepared trace.
class PreparedFeed : public Feed {
 public:
  explicit PreparedFeed(const PreparedTrace& trace) : trace_(trace) {}

  ControlSizes sizes() const override;
  void attach(ControlRegion& region) override;
  const ChunkSource& chunks() const override { return *trace_.chunks(); }
  void publish_until(const Mark& mark) override;
  void publish_rest() override;

 private:
  const PreparedTrace& trace_;
  ControlRegion* region_ = nullptr;
};

/// Reads the trace while the worker runs, through a ring of 1 MiB and a chunk for each lane. Words are published a
/// quarter of the ring at a time, so that a worker that is faster than the decoder sleeps seldom and runs long.
class StreamedFeed : public Feed {
 public:
  /// `when_full` is called while no chunk is free, once all words so far are published.
  StreamedFeed(const PreparedTrace& trace, Order order, std::function<void()> when_full);

  ControlSizes sizes() const override;
  void attach(ControlRegion& region) override;
  const ChunkSource& chunks() const override { return ring_; }
  void publish_until(const Mark& mark) override;
  void publish_rest() override;

 private:
  static constexpr std::uint32_t ring_chunks = 128;

  void route_until(std::uint64_t event);
  void publish();

  const PreparedTrace& trace_;
  Order order_;
  std::function<void()> when_full_;
  ChunkRing ring_;
  LaneWriter writer_;
  ControlRegion* region_ = nullptr;
  std::optional<Router> router_;
  Reader reader_;
  std::span<const Event> batch_;
  std::uint64_t event_ = 0;
  std::uint64_t published_operations_ = 0;
};

/// Publishes words of a lane up to a position, and wakes its thread where it waits for them.
void publish(lane& lane, std::uint32_t first_chunk, std::uint64_t position);

}  // namespace cmt::replay
