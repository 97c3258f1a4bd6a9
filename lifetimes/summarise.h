#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstdint>
#include <string>

#include "cmt/reader.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/at_peak.h"
#include "libcmt/heap/clock.h"
#include "lifetimes/summary.h"
#include "toolkit/command/complaints.h"

namespace cmt::lifetimes {

/// Makes the summary of one trace, event by event. Memory: some 60 bytes a live block and 1 MiB for the histogram.
class Summariser {
 public:
  /// `name` is the input's. Borrows `complaints`.
  Summariser(const std::string& name, heap::Clock::Unit clock, command::Complaints& complaints);

  void add(const Event& event);

  /// Counts what is still alive, and returns all. To be called once.
  Summary finish(bool truncated);

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint32_t thread = 0;
    std::uint32_t reallocations = 0;
  };

  Tag& last_made_by(std::uint32_t thread);
  std::uint32_t end(const Event& event, Tag last_made);
  void begin(const Event& event, std::uint32_t reallocations);
  void count_chain(std::uint32_t reallocations);
  void note_peak(const Event& event);
  void complain(Tag tag, const char* what);

  command::Complaints& complaints_;
  heap::Clock clock_;
  Summary summary_;
  Input input_;
  BlockTable<Block> live_;
  Amount live_total_;
  std::array<heap::AtPeak<Amount>, SizeClasses::count> live_by_size_{};
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  std::uint64_t short_lived_max_;
  tsl::robin_map<std::uint32_t, Tag> last_made_;  // by thread: the block that its last event made; 0: none
  Tag first_thread_made_ = 0;                     // the same of thread 0, which needs no search
  Tag first_tag_ = 0;
};

}  // namespace cmt::lifetimes
