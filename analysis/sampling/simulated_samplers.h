/// Simulates samplers on a full trace, for lifetimes --as-if-sampled.
///
/// A simulated sampler does as the recorder does (format-spec/cmt.md, "Sampled traces"):
///
/// - It has a Poisson process over the bytes of each thread, and draws the next point after each sample.
/// - It takes a realloc for the end of a block and a new block.
/// - The recorder raises its interval when it has 49,152 live samples. A simulated sampler does not.
///
/// Many samplers follow one pass over the trace. The bytes of a thread are added up once for all of them. Most blocks
/// end before the next point of any sampler, and cost one comparison.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <random>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/sampling/estimate.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/live_totals.h"
#include "libcmt/number_hash.h"

namespace cmt::analysis {

class SimulatedSamplers {
 public:
  static constexpr unsigned runs_max = 64;

  /// Simulates `runs` samplers, each with random numbers of its own: run 0 is the same however many there are.
  SimulatedSamplers(By by, std::uint64_t interval, unsigned runs, std::uint64_t seed);

  /// Counts an event. `peaks`: UseCounter::peaks() before the event, since the peak of the trace counts, not that of
  /// the samples.
  void count_event(const Event& event, std::uint64_t peaks);

  /// Calls visit(key, run, estimates) for each set and run with a sample. `peaks`: UseCounter::peaks() at the end.
  template <class Visit>
  void for_each(std::uint64_t peaks, Visit visit) const {
    for (const auto& [key_and_run, sums] : sums_) {
      visit(static_cast<KeyId>(key_and_run / runs_max), static_cast<unsigned>(key_and_run % runs_max),
            SampledUse{sums.allocated, sums.live.at_peak(peaks), sums.live.now()});
    }
  }

 private:
  struct Thread {
    double asked = 0;    ///< bytes
    double nearest = 0;  ///< the first point of all runs
    std::vector<double> points;
  };
  struct Sample {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t runs = 0;  ///< bit by bit: those of which it is a sample
    KeyId key = 0;
  };
  struct Sums {
    Estimate allocated;
    heap::AtPeak<Estimate> live;
  };

  double gap(unsigned run);
  std::uint64_t runs_that_sample(const Event& event);
  template <class Change>
  void for_each_sum(const Sample& sample, Change change);

  AllocationKeys keys_;
  std::uint64_t interval_;
  std::vector<std::mt19937_64> random_;  // by run
  tsl::robin_map<std::uint32_t, Thread, NumberHash> threads_;
  BlockTable<Sample> samples_;
  tsl::robin_map<std::uint64_t, Sums, NumberHash> sums_;  // by key and run
};

}  // namespace cmt::analysis
