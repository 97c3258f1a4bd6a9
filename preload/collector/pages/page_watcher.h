#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/drain/backlog.h"
#include "preload/collector/drain/ring_memory.h"
#include "preload/collector/pages/page_map.h"
#include "preload/collector/pages/page_runs.h"

namespace cmt::collector {

/// The record_blocks that the drainer has met, on their way to the page watcher. They need not be in the order of the
/// events: they only say where to look.
class LargeBlockHints {
 public:
  LargeBlockHints();
  ~LargeBlockHints();
  LargeBlockHints(const LargeBlockHints&) = delete;
  LargeBlockHints& operator=(const LargeBlockHints&) = delete;

  /// Hands over records, and empties them.
  void put(std::vector<Slot>& records);
  /// Those that were put since the last call.
  std::vector<Slot> take();
  /// Readable when there are some.
  int arrived_fd() const { return arrived_fd_; }
  /// Nobody will take any more.
  void close();

 private:
  const int arrived_fd_;
  std::mutex mutex_;
  std::vector<Slot> records_;  // guarded by it, as is
  bool is_closed_ = false;
};

/// What a look at a block has found, that no look before has.
struct PagesNews {
  std::uint64_t address, bytes;  ///< of the block
  bool is_first;                 ///< there was no look before
  std::vector<PageRun> runs;
};

/// The large blocks that live, as far as is known, and their pages that were seen.
class WatchedBlocks {
 public:
  struct Block {
    std::uint64_t bytes = 0;
    bool was_asked = false;  ///< about its pages, when it was given
    bool was_seen = false;   ///< has been looked at
    bool is_done = false;    ///< all of its pages were seen, or they cannot be read: it only waits for its end
    PageSet seen{};
  };

  /// Begins and ends of blocks. The end of a block that is not known yet is remembered until the next call: rings are
  /// read one after the other.
  void note(const std::vector<Slot>& records);
  /// Whether there are none but those that are done.
  bool empty() const { return undone_ == 0; }
  /// Notes which pages of a watched block are in memory. Returns those that were not seen before, also none of them if
  /// it is the first look at a block that the program could not ask about. nullopt: there is nothing to tell.
  std::optional<PagesNews> note_runs(std::uint64_t address, Block& block, const std::vector<PageRun>& runs);
  /// One of them needs no further look.
  void set_done(Block& block);
  /// By address.
  std::unordered_map<std::uint64_t, Block>& blocks() { return blocks_; }

 private:
  void note_begin(std::uint64_t address, const Block& block);
  /// False: it is not known.
  bool note_end(std::uint64_t address);

  std::unordered_map<std::uint64_t, Block> blocks_;
  std::size_t undone_ = 0;
  std::unordered_set<std::uint64_t> ended_, ended_before_;
};

/// The page watcher: looks at the large blocks' pages from outside while they live, so that a buffer which is filled
/// slowly is seen so. What is new goes to the backlog, as records of a ring of its own (preload/protocol.h, "Pages of
/// large blocks").
///
/// The interval between looks is a 64th of the process's age, from 1 to 250 ms. Looks may take a hundredth of a
/// processor's time, and 2 ms in advance; when that is used up, the interval grows beyond. So a process of a tenth of a
/// second gets some twenty looks. A block all of whose pages were seen is not looked at any more.
void run_page_watcher(RingMemory& memory, Backlog& backlog, const SessionState& state, LargeBlockHints& hints);

}  // namespace cmt::collector
