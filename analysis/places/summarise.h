/// Builds overhead's summary of one trace.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "analysis/places/held_pages.h"
#include "analysis/places/places.h"
#include "analysis/places/plot_data.h"
#include "analysis/places/summary.h"
#include "analysis/places/untouched_pages.h"
#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/command/complaints.h"

namespace cmt::analysis {

/// Builds overhead's summary of one trace, event by event.
///
/// Pages and gaps are kept up to date with every event, from the block's neighbours. Old blocks, pins and holders need
/// a walk over all live blocks, which every 16th sample includes. After every second sample is dropped, every eighth of
/// the rest included a walk. A summary shows 16 to 24 walks; each earlier doubling of the events took 8 more.
class Summariser {
 public:
  /// `name` is the input's. Borrows `complaints`.
  /// `touched_min`: as Header has it.
  Summariser(const std::string& name, int page_shift, bool has_usable, command::Complaints& complaints,
             std::uint64_t touched_min = 0);

  /// Also collects the curve and the address map for a picture. To be called before the first event. `axis` is that of
  /// the picture.
  void collect_plot(std::optional<heap::Clock::Unit> axis) {
    plot_.emplace(page_shift_);
    summary_.axis = axis;
  }

  /// Calls `walk` at each sample at which the holders are found, the last time at the sample of the summary's holders.
  /// `walk` gets the live blocks, and the memory in use as far as it follows from live blocks.
  void call_at_holders(PlaceFollower::Walk walk) { places_.call_at_holders(std::move(walk)); }

  /// Calls `walk` at each walk over old blocks that finds a twentieth more separable pages than at the previous call.
  /// So the last call is at the walk with the most separable pages, or nearly.
  void call_at_separable(PlaceFollower::Walk walk) { places_.call_at_separable(std::move(walk)); }

  const heap::AddressIndex& live() const { return places_.live(); }
  const MemoryUse& now() const { return now_; }

  /// Throws FormatError for a block without an address.
  void count_event(const Event& event);

  /// The two steps of count_event(), for two threads. The first calls follow() for some events. The second calls
  /// begin_count() with the changes that follow() appended, and count() for the same events.
  PlaceFollower& places() { return places_; }
  void begin_count(const PlaceChanges& changes) {
    assert(change_ == changes_end_);  // those of the call before are counted
    change_ = changes.changes.data();
    changes_end_ = change_ + changes.changes.size();
    walk_ = changes.walks.data();
  }
  void count(const Event& event);

  /// Takes the last sample and returns all. To be called once.
  Summary finish(bool truncated);

 private:
  struct Plot {
    explicit Plot(int page_shift) : map(page_shift) {}
    Curve curve;
    AddressMapper map;
  };

  void apply(const PlaceChange& change);
  void count_gaps(const PlaceChange& change, std::uint64_t times);
  void count_gap(std::uint64_t low_end, std::uint64_t high, std::uint64_t times);
  void add_sample(const Event& sample);
  void save_peak();
  void take_sample(const OldBlocks* old);
  void drop_samples();

  command::Complaints& complaints_;
  int page_shift_;
  PlaceFollower places_;
  PlaceChanges own_changes_;  // of count_event()

  const PlaceChange* change_ = nullptr;  // the next of those that are counted
  const PlaceChange* changes_end_ = nullptr;
  const OldBlocks* walk_ = nullptr;  // the next
  Summary summary_;
  MemoryUse now_;
  HeldPages held_;
  UntouchedPages untouched_;
  std::array<heap::AtPeak<Gaps>, SizeClasses::count> gaps_{};
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  SampleClock samples_;
  std::optional<Plot> plot_;
};

}  // namespace cmt::analysis
