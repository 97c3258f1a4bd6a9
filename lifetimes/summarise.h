/// Builds the summary of lifetimes (summary.h) from the events of a trace.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "analysis/fates/fate.h"
#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "lifetimes/summary.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// Builds the summary of one trace, event by event. Memory: some 60 bytes a live block and 1 MiB for the histogram.
class Summariser {
 public:
  /// `name` is the input's. Borrows `complaints`.
  /// `touched_min`: as Header has it.
  Summariser(const std::string& name, heap::Clock::Unit clock, command::Complaints& complaints,
             std::uint64_t touched_min = 0);

  void count_event(const Event& event);

  /// As BlockFates::note_unknown_end().
  void note_unknown_end() { fates_.note_unknown_end(); }

  /// Counts the blocks that are still live and returns the summary. To be called once.
  Summary finish(bool truncated);

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint32_t thread = 0;
    std::uint32_t reallocations = 0;
  };

  std::uint32_t end_block(const Event& event, const analysis::EndedBlock<Block>& ended);
  void begin_block(const Event& event, std::uint32_t reallocations);
  void count_chain(std::uint32_t reallocations);
  void count_untouched(const Block& block, bool is_known, std::uint64_t bytes);
  void save_peak(const Event& event);

  command::Complaints& complaints_;
  Summary summary_;
  Input input_;
  analysis::BlockFates<Block> fates_;
  Amount live_total_;
  std::uint64_t untouched_of_peak_ = 0;  // of blocks that were live at the last peak and have ended since
  Tag peak_tag_ = 0;                     // the block that was made at the last peak
  std::array<heap::AtPeak<Amount>, SizeClasses::count> live_by_size_{};
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
};

/// Returns the summary of the trace that the options name.
Summary summary_of(const trace::Options& options);

}  // namespace cmt::lifetimes
