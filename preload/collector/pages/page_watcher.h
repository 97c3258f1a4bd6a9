// The page watcher: a thread that looks at the pages of large blocks while these live, at a bounded cost.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/drain/backlog.h"
#include "preload/collector/drain/ring_memory.h"
#include "preload/collector/pages/page_map.h"
#include "preload/collector/pages/page_runs.h"

namespace cmt::collector {

/// The record_blocks that the drainer passes to the page watcher. They need not be in the order of the events, because
/// they only show where to look.
class LargeBlockHints {
 public:
  LargeBlockHints();
  ~LargeBlockHints();
  LargeBlockHints(const LargeBlockHints&) = delete;
  LargeBlockHints& operator=(const LargeBlockHints&) = delete;

  /// Hands over records, and empties them.
  void put(std::vector<Slot>& records);
  /// Returns the records that were put since the last call.
  std::vector<Slot> take();
  /// Readable when there are records.
  int arrived_fd() const { return arrived_fd_; }
  /// Notes that nobody will take records any more.
  void close();

 private:
  const int arrived_fd_;
  std::mutex mutex_;
  std::vector<Slot> records_;  // guarded by mutex_, as is is_closed_
  bool is_closed_ = false;
};

/// The pages that a look at a block has found and no earlier look has.
struct PagesNews {
  std::uint64_t address, bytes;  ///< of the block
  bool is_first;                 ///< there was no earlier look
  std::vector<PageRun> runs;
};

/// The large blocks that are known to live, and their pages that were seen.
class WatchedBlocks {
 public:
  struct Block {
    std::uint64_t bytes = 0;
    bool was_asked = false;  ///< the program asked the kernel about its pages when it was given
    bool was_seen = false;   ///< the watcher has looked at it
    bool is_done = false;    ///< all of its pages were seen or cannot be read: nothing is left to see
    PageSet seen{};
  };

  /// Takes begins and ends of blocks. Remembers the end of an unknown block until the next call, because rings are read
  /// one after the other.
  void note(const std::vector<Slot>& records);
  /// Whether no block is left to look at.
  bool empty() const { return undone_ == 0; }
  /// Notes which pages of a watched block are in memory. Returns those that were not seen before, or nullopt if there
  /// is nothing to report. The first look at a block about which the program did not ask is always reported, even
  /// without pages.
  std::optional<PagesNews> note_runs(std::uint64_t address, Block& block, const std::vector<PageRun>& runs);
  /// Notes that a block needs no further look.
  void set_done(Block& block);
  /// The blocks by address.
  std::map<std::uint64_t, Block>& blocks() { return blocks_; }

 private:
  void note_begin(std::uint64_t address, const Block& block);
  void note_discard(std::uint64_t begin, std::uint64_t bytes);
  /// Returns false if the block is not known.
  bool note_end(std::uint64_t address);

  std::map<std::uint64_t, Block> blocks_;  ///< by address
  std::size_t undone_ = 0;
  std::unordered_set<std::uint64_t> ended_, ended_before_;
};

/// Runs the page watcher. It looks at the large blocks' pages from outside while the blocks live, so that the trace
/// shows when a buffer is filled slowly. New pages go to the backlog, as records of a ring of its own
/// (preload/protocol.h, "Pages of large blocks").
///
/// The interval between looks is a 64th of the process's age, from 1 to 250 ms. Looks may take a hundredth of a
/// processor's time, and 2 ms in advance. When this time is used up, the interval grows beyond. So a process that lives
/// a tenth of a second gets some twenty looks. A block whose pages were all seen gets no further look.
void run_page_watcher(RingMemory& memory, Backlog& backlog, const SessionState& state, LargeBlockHints& hints);

}  // namespace cmt::collector
