/// Decides whether a change between two runs may be chance, for --diff.
///
/// A program whose calls come in random order, as a server's do, calls each function another number of times in each
/// run. The function with most of the bytes then changes by more than a function that was changed to allocate 1 % more.
/// The change is true, but it has no cause in the code. Example, two runs of a program with 60 functions:
///
///     change     before    blocks before, after
///     -4.1 MiB   1.2 GiB   5,120   5,103          a buffer that grows: 17 calls fewer
///     +2.9 MiB   1.1 MiB   6,012   12,050         the changed function
///
/// Method. If blocks were made independently of each other, their number in a run would have a Poisson distribution.
/// The variance of the sum of their sizes would be the sum of their squared sizes (compound Poisson). The change from
/// one run to the other has the variance of both.
///
/// The program's own functions show how far it is from this model. The dispersion is the median of change² / variance
/// over the functions, divided by 0.455, the same median for normally distributed numbers. Calls that come in groups
/// make the dispersion larger. A program that does the same in both runs changes few functions: its dispersion is 0,
/// and no change is chance. If the dispersion is above dispersion_max, the runs did different work, and no change is
/// judged.
///
/// A change may be chance if it is within deviations_max standard deviations. One of 10,000 functions that change by
/// chance only is beyond. A change of bytes must also be within them in the number of blocks. The reason is a function
/// with few large blocks that now also makes many small ones: it changes by less than its large blocks do by chance.
///
/// Two kinds of figures are not judged:
///
/// - figures with fewer than blocks_least blocks;
/// - figures of one moment (the peak, the live bytes at the end), whose blocks are not independent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/differences/diff_use.h"
#include "analysis/fates/use.h"

namespace cmt::analysis {

/// The figures of a contributor that the method needs.
struct ChanceSample {
  double change = 0;
  double variance = 0;  ///< of independent calls
  double blocks = 0;    ///< in both traces
};

inline constexpr double dispersion_max = 16, deviations_max = 4;
inline constexpr double blocks_least = 20;
inline constexpr std::size_t samples_least = 10;  ///< with fewer functions the dispersion is not known

/// Returns the sample of a contributor; empty if the figure is one of a moment. `squared_bytes`: the sum of the squared
/// sizes of the blocks of both traces.
std::optional<ChanceSample> chance_sample(const DiffUse& use, double squared_bytes, Metric metric);

/// Returns the dispersion; empty if too few samples have enough blocks, or if the runs did different work.
std::optional<double> dispersion_of(const std::vector<ChanceSample>& samples);

/// Returns whether a change may be chance.
bool is_within_chance(const ChanceSample& sample, double dispersion);

}  // namespace cmt::analysis
