// A session: one traced process, from its start to its end, in three threads.
//
//     rings --(drainer)--> backlog --(encoder)--> order --> outputs
//                 ^
//                 +-- the watch: end of the process, samples, commands from outside
//
// The drainer does nothing that takes long, so that rings are emptied whatever the encoder is at (zstd takes some
// milliseconds a block). It sleeps until the program rings, or, where the rings fill fast, by the clock.
//
// A request for a whole trace while the program goes on (before an exec, in abort) is met by a copy of this process, by
// fork: the copy writes what a trace ends with, and the original takes that back if anything follows. So there is
// one way to end a trace, and neither form needs a way to be opened again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "preload/collector/backlog.h"
#include "preload/collector/drainer.h"
#include "preload/collector/ring_memory.h"
#include "preload/collector/order.h"
#include "preload/collector/outputs.h"
#include "preload/collector/processors.h"
#include "preload/collector/settings.h"
#include "preload/collector/ticks.h"

namespace cmt::collector {

class Session {
 public:
  Session(Memory& memory, const std::vector<int>& outputs, int process_fd, Settings settings);

  /// Returns when the trace is as it will stay.
  void run();

 private:
  enum class End { none, exited, killed, unknown, executed };

  // session_watch.cpp
  void watch();
  bool was_executed() const;
  void end_waiting();
  End how_it_ended();
  int wait_status() const;
  void sample();
  void read_commands();
  void command(std::string_view line);
  void put_mark(std::string label);
  void set_paused(bool paused);
  void open_control();
  void put_event(std::uint32_t kind, std::uint64_t size, std::string_view label);

  // session.cpp
  void drain();
  void stand_aside();
  void open_to_readers(bool is_running);
  bool pass_on_request();
  void sleep(std::uint32_t bell);
  void encode();
  bool handle(Parcel& parcel);
  std::size_t add(std::span<BookedEvent> events);
  void at_cut(const Parcel& parcel);
  void ring_bell();
  bool rings_fill_up();
  void save();
  void checkpoint(std::uint32_t request);
  void finish(bool truncated);
  void answer(std::uint32_t request);
  void give_verdict(std::uint32_t verdict, const std::string& message);
  void fail(const OutputError& error);
  void report();
  std::uint64_t lost();

  Memory& memory_;
  Settings settings_;
  Outputs outputs_;
  Backlog backlog_;
  Drainer drainer_;
  Processors processors_;
  pid_t encoder_thread_ = 0;
  std::atomic<int> encoder_processor_ = -1;  // -1: it has nothing to do
  Order order_;
  Ticks ticks_;
  int process_fd_;
  int control_fd_ = -1;
  std::string commands_;  ///< of which the end has not come
  int over_fd_;           // readable when it is over
  std::uint32_t requests_seen_ = 0;
  std::atomic<End> end_ = End::none;
  std::atomic<bool> over_ = false;
  std::atomic<bool> flush_asked_ = false;
  std::atomic<std::uint64_t> drain_cpu_ns_ = 0;
  int error_ = 0;  // that ended the trace
  int wait_status_ = -1;
  bool was_waiting_ = false;  // for its keeper, when we looked last
  std::uint64_t events_ = 0, events_flushed_ = 0, flushed_ns_ = 0;
};

}  // namespace cmt::collector
