/// Estimates of the bytes and blocks of a program from a sample of its blocks (format-spec/cmt.md, "Sampled traces").
///
/// A Poisson process puts points on the bytes that each thread asks for, on average one per sampling interval R. A
/// block of S bytes is a sample with p = 1 - exp(-S / R), independently of all others. Each sample counts for all the
/// blocks that were none:
///
///     S        R        p        bytes      blocks
///     64       512 KiB  0.00012  524,320    8,192.5     S / p and 1 / p
///     1 MiB    512 KiB  0.865    1,212,700  1.16
///     16 MiB   512 KiB  1        16 MiB     1           surely a sample, so the estimate is exact
///
/// These sums have no bias (Horvitz and Thompson 1952), except at the moment where they are highest. An Estimate also
/// sums the variances, from which interval95() follows.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace cmt::analysis {

/// The amounts for which one sample counts, and their variances.
struct Weight {
  double bytes = 0;            ///< S / p
  double blocks = 0;           ///< 1 / p
  double bytes_variance = 0;   ///< in bytes^2: w (w - S), with w = S / p
  double blocks_variance = 0;  ///< (1 / p) (1 / p - 1)
};

/// Returns the weight of a sample of `size` bytes at the sampling interval `interval`, in bytes. A block of 0 bytes is
/// no sample and has no weight. Exact for blocks far below and far above the interval.
Weight weight_of(std::uint64_t size, std::uint64_t interval);

/// The estimated bytes and blocks of a set of blocks. Estimates of disjoint sets are added by `+=`.
struct Estimate {
  std::uint64_t interval = 0;  ///< the sampling interval in bytes, the largest if it rose
  std::uint64_t samples = 0;
  double bytes = 0;
  double blocks = 0;
  double bytes_variance = 0;   ///< in bytes^2
  double blocks_variance = 0;  ///< in blocks^2
  bool is_at_peak = false;     ///< of the blocks that were live at the peak of the estimated live bytes

  void add(const Weight& sample);
  /// Removes a sample that was added. Without samples, the sums are exactly 0.
  void remove(const Weight& sample);
  Estimate& operator+=(const Estimate& more);
  bool operator==(const Estimate&) const = default;
};

/// A range, both ends included.
struct Range {
  double low = 0, high = 0;

  bool has(double number) const { return low <= number && number <= high; }
};

/// Returns the range that contains the true bytes with a probability of 95 %.
///
/// The number of samples is taken as a Poisson count: n = E^2 / V, each for E / n bytes. The range is the one of
/// Garwood (1936), with the formula of Wilson and Hilferty (1931). E +- 1.96 sigma is wrong for few samples: it
/// contained the truth in 3 to 95 of 100 cases. The upper end counts a further sample of one interval, as Fay and Feuer
/// (1997) do for weighted sums. So a caller whose blocks are all large may have small ones that are not seen. Without a
/// sample the range is 0 to unseen_below().
///
/// At a peak the lower end leaves out one sample. A peak is a moment at which a sample is added, the highest of many.
/// So a function whose blocks live for some instructions often has one sample there.
Range interval95(const Estimate& estimate);
/// Returns the same of the blocks. Without a sample nothing is known, and the range is 0 to 0.
Range blocks_interval95(const Estimate& estimate);
/// Returns the range of `after` less `before`, two independent estimates of bytes or, if `of_blocks`, of blocks: by the
/// ends of both ranges (Zou and Donner 2008).
Range change95(const Estimate& before, const Estimate& after, bool of_blocks = false);

/// Returns the bytes, 3.0 intervals, below which a set of blocks can be without a sample: with 5 % or more.
double unseen_below(std::uint64_t interval);

/// Returns a number that is not negative as the nearest integer; of a damaged trace, 2^64 - 2 at most.
std::uint64_t whole(double number);

/// Returns the bytes with their range: "12.4 MiB (10.1 to 15.0)", "1.20 MiB (812 KiB to 1.70 MiB)"; without a sample
/// "0 B (below 1.50 MiB)".
std::string estimate_text(const Estimate& estimate);
/// Returns the blocks with three digits and their range: "12,300 (10,100 to 15,000)"; without a sample "0".
std::string blocks_text(const Estimate& estimate);

template <class Visitor>
void describe(Visitor& field, const Estimate& estimate) {
  const Range bytes = interval95(estimate), blocks = blocks_interval95(estimate);
  const auto of_blocks = [&](double end) { return estimate.samples == 0 ? std::nullopt : std::optional(whole(end)); };
  field("bytes", whole(estimate.bytes), "the estimate, without a bias except at the peak");
  field("bytes_low", whole(bytes.low), "the lower end of its 95 % interval");
  field("bytes_high", whole(bytes.high), "the upper end");
  field("blocks", whole(estimate.blocks), "the estimate, without a bias except at the peak");
  field("blocks_low", of_blocks(blocks.low), "as of bytes; null without a sample");
  field("blocks_high", of_blocks(blocks.high), "as of bytes; null without a sample");
  field("samples", estimate.samples, "on which the estimate rests");
}

/// The estimates of a stack, or of many. They alone follow from samples: the ages of blocks and the threads that end
/// them need all events.
struct SampledUse {
  Estimate allocated;
  Estimate peak{};      ///< live when the estimated live bytes of the whole trace, or of the slice, were at their peak
  Estimate live{};      ///< at the end
  Estimate at_begin{};  ///< live at the begin of the slice

  SampledUse& operator+=(const SampledUse& more);
};

template <class Visitor>
void describe(Visitor& field, const SampledUse& use) {
  const Range growth = change95(use.at_begin, use.live);
  field("allocated", use.allocated, "blocks made");
  field("peak", use.peak, "live at the peak of the estimated live bytes, of a slice at its peak");
  field("end_live", use.live, "live at the end");
  field("growth_bytes_low", std::llround(growth.low), "the lower end of the 95 % interval of growth_bytes");
  field("growth_bytes_high", std::llround(growth.high), "the upper end");
}

}  // namespace cmt::analysis
