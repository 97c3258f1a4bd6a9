#pragma once

#include <cstddef>
#include <vector>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// The points of a series that can be seen in so many columns of pixels: of each column the first, the lowest, the
/// highest and the last, in their order. So no peak is lost or moved by more than a column, and a picture's size does
/// not depend on the length of the series. Points that are not finite, or outside `low` to `high`, are left out.
Series downsample(const Series& series, double low, double high, std::size_t columns);

/// The same for bands that lie on each other: of each column the points where the sum is least and greatest, at the
/// same x for all bands. Longer bands than the first are cut, shorter ones continue with 0.
std::vector<Series> downsample_bands(const std::vector<Series>& bands, double low, double high, std::size_t columns);

/// A map of at most so many columns and rows. Neighbouring cells become one, with the greatest of their values.
HeatMap downsample(const HeatMap& heat, std::size_t most);

}  // namespace cmt::output
