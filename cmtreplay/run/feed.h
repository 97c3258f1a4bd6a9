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

  /// What the region of control has to hold for it.
  virtual ControlSizes sizes() const = 0;
  /// Fills in what the control says of operations.
  virtual void open(ControlRegion& region) = 0;
  virtual int operations_fd() const = 0;
  virtual std::uint32_t chunk_count() const = 0;

  /// Publishes all operations before a mark.
  virtual void advance(const Mark& mark) = 0;
  virtual void finish() = 0;
};

/// The operations of a prepared trace.
class PreparedFeed : public Feed {
 public:
  explicit PreparedFeed(const PreparedTrace& trace) : trace_(trace) {}

  ControlSizes sizes() const override;
  void open(ControlRegion& region) override;
  int operations_fd() const override { return trace_.chunks()->memory().fd(); }
  std::uint32_t chunk_count() const override { return trace_.chunks()->count(); }
  void advance(const Mark& mark) override;
  void finish() override;

 private:
  const PreparedTrace& trace_;
  ControlRegion* region_ = nullptr;
};

/// Reads the trace as the worker goes, through a ring of 1 MiB and a chunk a lane. Words are published a quarter of the
/// ring at a time, so that a worker that is faster than the decoder sleeps seldom and runs long.
class StreamedFeed : public Feed {
 public:
  /// `when_full` is called while no chunk is free, once all words so far are published.
  StreamedFeed(const PreparedTrace& trace, Order order, std::function<void()> when_full);

  ControlSizes sizes() const override;
  void open(ControlRegion& region) override;
  int operations_fd() const override { return ring_.memory().fd(); }
  std::uint32_t chunk_count() const override { return ring_.count(); }
  void advance(const Mark& mark) override;
  void finish() override;

 private:
  static constexpr std::uint32_t ring_chunks = 128;

  /// False at the end of the trace.
  bool read_more();
  void route_until(std::uint64_t event);
  void publish();

  const PreparedTrace& trace_;
  Order order_;
  std::function<void()> when_full_;
  RingChunks ring_;
  LaneWriter writer_;
  ControlRegion* region_ = nullptr;
  std::optional<Router> router_;
  Reader reader_;
  std::span<const Event> batch_;
  std::uint64_t event_ = 0;
  std::uint64_t published_operations_ = 0;
};

/// How far a lane may go, and its thread woken where it waits for that.
void publish(lane& lane, std::uint32_t first_chunk, std::uint64_t position);

}  // namespace cmt::replay
