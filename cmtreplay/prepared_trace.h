#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "cmt/reader.h"
#include "cmtreplay/marks.h"
#include "cmtreplay/shared_memory.h"

namespace cmt::replay {

/// What a trace holds, counted while it was prepared.
struct TraceFacts {
  std::uint64_t events = 0;
  std::uint64_t calls = 0;           ///< events that are carried out
  std::uint64_t failed_calls = 0;    ///< refused when recorded: left out
  std::uint64_t unknown_blocks = 0;  ///< events that give back a block from nowhere: frees are left out
  std::uint64_t other_events = 0;    ///< threads, marks, samples
  std::uint64_t defects = 0;
  bool truncated = false;
  std::array<std::uint64_t, kind_count> by_kind{};
  Live peak_live;  ///< each of the two at its own peak
  std::uint64_t peak_live_bytes_event = 0;
  Live end_live;
};

/// A whole trace as operations in shared memory: 8 bytes an event, and what fits beside.
class PreparedTrace {
 public:
  /// Reads all that `reader` has. `progress` is called now and then.
  PreparedTrace(Reader& reader, const std::function<void(const Reader&)>& progress);

  const TraceFacts& facts() const { return facts_; }
  const SharedMemory& operations() const { return operations_; }
  std::uint64_t words() const { return words_; }
  std::uint64_t slots() const { return planner_.slots(); }
  std::uint64_t pointers() const { return pointers_; }
  const std::vector<Mark>& marks() const { return marks_; }

  /// The event, counted from 1, whose operation stands at a word. Reads the operations from the last anchor on.
  std::uint64_t event_at(std::uint64_t word) const;

 private:
  /// The first operation of an event that does not follow its predecessor one for one.
  struct Anchor {
    std::uint64_t word;
    std::uint64_t event;
  };

  void take(const Event& event);
  void count(const Event& event, const Step& step);
  void flush();

  SharedMemory operations_{"operations"};
  Planner planner_;
  MarkKeeper keeper_;
  TraceFacts facts_;
  std::vector<std::uint64_t> buffer_;
  std::vector<Anchor> anchors_;
  std::vector<Mark> marks_;
  bool regular_ = false;  ///< the last event made one operation
  std::uint64_t words_ = 0;
  std::uint64_t pointers_ = 0;
};

}  // namespace cmt::replay
