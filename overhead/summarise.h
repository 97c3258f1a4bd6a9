#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "cmt/reader.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/at_peak.h"
#include "overhead/plot_data.h"
#include "overhead/summary.h"
#include "toolkit/command/complaints.h"

namespace cmt::overhead {

/// Makes the summary of one trace, event by event.
///
/// What neighbours tell is kept up to date with every event: pages, free pages, gaps. What needs all blocks (old ones,
/// pins) is found by a walk at every 16th sample. How long a trace is, a pipe does not say; so samples are taken at
/// even intervals, and when there are twice as many as needed every second one is dropped and the interval doubled; of
/// those that stay every eighth has had a walk. In all there are 16 to 24 walks that can be seen, and 8 for every
/// doubling of the events before.
class Summariser {
 public:
  /// `name` is the input's. Borrows `complaints`.
  Summariser(const std::string& name, int page_shift, bool has_usable, command::Complaints& complaints);

  /// Also collects what a picture needs. To be called before the first event; each sample then costs a walk.
  void collect_plot() { plot_.emplace(page_shift_); }

  /// Throws FormatError for a block without an address.
  void add(const Event& event);

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

  void begin(const Event& event);
  void end(const Event& event);
  void count_begin(const heap::Neighbourhood& found);
  void count_end(const heap::Neighbourhood& found);
  void count_gap(const heap::PlacedBlock& low, const heap::PlacedBlock& high, std::int64_t times);
  std::uint64_t free_pages(const heap::PlacedBlock& low, const heap::PlacedBlock& high) const;
  void note_peak();
  void sample(bool walks);
  OldBlocks find_old();
  void keep_pins(const std::vector<heap::PlacedBlock>& pins);
  void thin();
  void complain(const std::string& what) { complaints_.add(what); }

  command::Complaints& complaints_;
  int page_shift_;
  Summary summary_;
  heap::AddressIndex live_;
  Sample now_;                         // without what a walk finds
  std::uint64_t allocated_bytes_ = 0;  // in all: the clock of ages
  std::array<heap::AtPeak<Gaps>, heap::SizeClasses::count> gaps_{};
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  std::uint64_t interval_ = first_interval;
  std::uint64_t next_sample_ = first_interval;
  Tag first_tag_ = 0;
  std::optional<Plot> plot_;
};

}  // namespace cmt::overhead
