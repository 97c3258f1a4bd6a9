/// Whether a change between two runs may be chance.
///
/// A program whose calls come in random order, as a server's do, calls each function another number of times in each
/// run. Then a function that has most of the bytes changes by more than one that was made to allocate 1 % more: the
/// change is true, but it has no cause in the code. Example, two runs of a program with 60 functions:
///
///     change     before    blocks before, after
///     -4.1 MiB   1.2 GiB   5,120   5,103          a buffer that grows: 17 calls fewer
///     +2.9 MiB   1.1 MiB   6,012   12,050         the function that was changed
///
/// Method. If blocks were made independently of each other, their number in a run would be of a Poisson distribution,
/// and the sum of their sizes would have the variance of the sum of their squared sizes (compound Poisson). The change
/// from one run to the other has the variance of both. How far a program is from that is told by its own functions:
/// the dispersion is the median of change² / variance over the functions, over 0.455, which is that median for numbers
/// of a normal distribution. Calls that come in groups make it larger. A program that does the same in both runs
/// changes few functions, so that it is 0 and no change is chance. Where it is above dispersion_max, the runs did
/// different work, and it tells nothing.
///
/// A change may be chance if it is within deviations_max standard deviations of that: of 10,000 functions that change
/// by chance only, one is beyond. A change of bytes must be so in the number of blocks, too: a function
/// with few large blocks that makes many small ones besides changes by less than its large ones do by chance. Of a
/// figure with fewer than blocks_least blocks nothing is told, and nothing of figures of one moment (the peak, what is
/// live at the end), whose blocks are not independent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/differences/diff_use.h"
#include "analysis/fates/use.h"

namespace cmt::analysis {

/// What is needed of a contributor.
struct ChanceSample {
  double change = 0;
  double variance = 0;  ///< of independent calls
  double blocks = 0;    ///< in both traces
};

inline constexpr double dispersion_max = 16, deviations_max = 4;
inline constexpr double blocks_least = 20;
inline constexpr std::size_t samples_least = 10;  ///< fewer functions tell no dispersion

/// Nothing where the figure is one of a moment. `squared_bytes`: the sum of the squared sizes of the blocks of both.
std::optional<ChanceSample> chance_sample(const DiffUse& use, double squared_bytes, Metric metric);

/// Nothing where too few samples have enough blocks, or where the runs did different work.
std::optional<double> dispersion_of(const std::vector<ChanceSample>& samples);

/// Whether a change may be chance; none may be.
bool is_within_chance(const ChanceSample& sample, double dispersion);

}  // namespace cmt::analysis
