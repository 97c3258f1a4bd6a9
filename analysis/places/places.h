/// The first half of overhead's summary: follows blocks by address and passes changes on, perhaps to another thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/places/heap_tops.h"
#include "analysis/places/mmap_threshold.h"
#include "analysis/places/summary.h"
#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/command/complaints.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::analysis {

/// Decides when samples are taken. The length of a trace from a pipe is not known. So samples are taken at even
/// intervals. When there are 256, every second one is dropped and the interval is doubled.
struct SampleClock {
  static constexpr std::size_t samples_max = 256;
  static constexpr std::uint64_t samples_a_walk = 16;

  std::uint64_t interval = 64;
  std::uint64_t next = interval;  ///< the event after which the next sample is taken

  /// Returns whether a sample includes a walk over the live blocks.
  bool walks_at(std::uint64_t event) const { return event % (samples_a_walk * interval) == 0; }

  /// To be called after a sample. The samples that are kept are at multiples of the interval.
  void advance(std::uint64_t event) {
    if (event == samples_max * interval) interval *= 2;
    next = event + interval;
  }
};

/// The change that an event makes: a block is made or ended between two others, or an unknown block is ended.
struct PlaceChange {
  enum class Sort : std::uint8_t { made, ended, unknown_end };

  // Fields that are neighbours in a PlacedBlock are apart here, or compilers would copy two at once (Neighbourhood).
  std::uint64_t event = 0;  ///< its number, counted from 1
  std::uint64_t address = 0;
  std::uint64_t own_pages = 0;  ///< pages that no other block is on
  std::uint64_t size = 0;
  std::uint64_t prev_end = 0;  ///< the end of the previous block; 0: there is none
  Tag tag = 0;
  std::uint64_t next_address = 0;  ///< of the next block; 0: there is none
  std::uint64_t slop = 0;
  Sort sort = Sort::made;

  heap::PlacedBlock block() const { return {.address = address, .size = size, .tag = tag, .slop = slop}; }
};

/// The changes that some events make, in order.
struct PlaceChanges {
  std::vector<PlaceChange> changes;
  std::vector<OldBlocks> walks;  ///< the results of the samples that included a walk

  void clear() {
    changes.clear();
    walks.clear();
  }
};

/// Follows the places of the blocks of a trace: the first half of a Summariser. The second half counts the changes. It
/// may run on another thread and be some events late, so the halves share no line of the cache.
class alignas(128) PlaceFollower {
 public:
  using Walk = std::function<void(const heap::AddressIndex& live, const MemoryUse& now)>;

  /// Borrows `complaints`.
  PlaceFollower(int page_shift, command::Complaints& complaints)
      : complaints_(complaints), page_shift_(page_shift), heap_tops_(page_shift) {}

  void call_at_holders(Walk walk) { walk_at_holders_ = std::move(walk); }
  void call_at_separable(Walk walk) { walk_at_separable_ = std::move(walk); }
  const heap::AddressIndex& live() const { return live_; }

  /// Fetches memory for an event that follow() will be called for.
  void fetch(const Event& event, bool is_near) const {
    if (live_.is_cached()) return;
    const std::uint64_t address = event.ends_block() ? event.old_address : event.address;
    if (is_near)
      live_.prefetch_blocks(address);
    else
      live_.prefetch_page(address);
  }

  /// Appends the changes that an event makes. Throws FormatError for a block without an address.
  void follow(const Event& event, PlaceChanges& out);

  /// Walks over the blocks that are live at the end.
  OldBlocks finish() { return find_old(); }

  /// Return the results of the walks: the samples with the most pinned pages, with the most unused bytes, and with most
  /// below the tops of heaps.
  Pins take_pins() { return std::move(pins_); }
  Holders take_holders() { return std::move(holders_); }
  HeapTops take_heap_tops() { return heap_tops_.take(); }
  MmapThreshold take_threshold(const std::string& unknown_because) { return threshold_.take(unknown_because); }

 private:
  void begin_block(const Event& event, PlaceChanges& out);
  void end_block(const Event& event, PlaceChanges& out);
  void change(const heap::Neighbourhood& found, PlaceChange::Sort sort, PlaceChanges& out);
  OldBlocks find_old();
  void keep_holders();
  void keep_separable(const OldBlocks& old);
  void keep_pins(const std::vector<heap::PlacedBlock>& pins);

  command::Complaints& complaints_;
  int page_shift_;
  heap::AddressIndex live_;
  heap::Neighbourhood
      found_;  // of the block that begins or ends. A new one for each block would cost as much as finding it
  trace::FirstTag first_tag_;
  MemoryUse now_;  // without the figures that only the second half knows
  SampleClock samples_;
  Pins pins_;
  HeapTopFinder heap_tops_;
  ThresholdFollower threshold_;
  Holders holders_;
  std::uint64_t unused_max_ = 0;  // bytes on pages, at the walk for the holders
  Walk walk_at_holders_;          // empty: none
  Walk walk_at_separable_;        // empty: none
  std::uint64_t separable_max_ = 0;
};

}  // namespace cmt::analysis
