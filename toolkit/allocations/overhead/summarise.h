#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/allocations/overhead/held_pages.h"
#include "toolkit/allocations/overhead/plot_data.h"
#include "toolkit/allocations/overhead/summary.h"
#include "toolkit/allocations/overhead/untouched_pages.h"
#include "toolkit/annotate/trace_tool.h"
#include "toolkit/command/complaints.h"

namespace cmt::overhead {

/// Makes the summary of one trace, event by event.
///
/// Pages and gaps are kept up to date with every event, from the block's neighbours. Old blocks, pins and holders need
/// a walk over all live blocks, at every 16th sample. The length of a trace that comes from a pipe is not known; so
/// samples are taken at even intervals, and when there are 256 every second one is dropped and the interval doubled. Of
/// those that stay every eighth has had a walk. A summary shows 16 to 24 walks; each earlier doubling of the events
/// took 8 more.
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

  /// Called with the live blocks and the memory in use.
  using Walk = std::function<void(const heap::AddressIndex& live, const MemoryUse& now)>;

  /// Has `walk` called at each sample at which the holders are found: the last time at the one that the summary tells.
  void call_at_holders(Walk walk) { walk_at_holders_ = std::move(walk); }

  const heap::AddressIndex& live() const { return live_; }
  const MemoryUse& now() const { return now_; }

  /// Throws FormatError for a block without an address.
  void count_event(const Event& event);

  /// Takes the last sample and returns all. To be called once.
  Summary finish(bool truncated);

 private:
  static constexpr std::size_t samples_max = 256;
  static constexpr std::uint64_t samples_a_walk = 16;
  static constexpr std::uint64_t first_interval = 64;

  struct Plot {
    explicit Plot(int page_shift) : map(page_shift) {}
    Curve curve;
    AddressMapper map;
  };

  void begin_block(const Event& event);
  void end_block(const Event& event);
  void count_begin(const heap::Neighbourhood& found);
  void count_end(const heap::Neighbourhood& found);
  void count_gap(const heap::PlacedBlock& low, const heap::PlacedBlock& high, std::int64_t times);
  void add_resident(std::uint64_t bytes);
  void save_peak();
  void take_sample(bool walks);
  OldBlocks find_old();
  void keep_holders();
  void keep_pins(const std::vector<heap::PlacedBlock>& pins);
  void drop_samples();

  command::Complaints& complaints_;
  int page_shift_;
  Summary summary_;
  heap::AddressIndex live_;
  MemoryUse now_;
  HeldPages held_;
  UntouchedPages untouched_;
  std::array<heap::AtPeak<Gaps>, SizeClasses::count> gaps_{};
  std::uint64_t unused_max_ = 0;  // bytes on pages, at the walk for the holders
  std::uint64_t peaks_ = 1;       // 0 would be a value that was never saved
  std::uint64_t interval_ = first_interval;
  std::uint64_t next_sample_ = first_interval;
  annotate::FirstTag first_tag_;
  std::optional<Plot> plot_;
  Walk walk_at_holders_;  // empty: none
};

}  // namespace cmt::overhead
