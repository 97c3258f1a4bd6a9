#pragma once

#include <cstddef>
#include <vector>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// What of a series can be seen in so many columns of pixels: of every column its first point, its lowest, its highest
/// and its last, in their order. So no peak is lost and none is moved by more than a column, and a picture's size does
/// not depend on how much it shows. Points that are not finite, or outside of `low` to `high`, are left out.
Series downsample(const Series& series, double low, double high, std::size_t columns);

/// The same for bands that lie on each other: of every column the points at which the sum is least and greatest, the
/// same ones of every band. Bands of other lengths than the first's are cut or end with 0.
std::vector<Series> downsample_bands(const std::vector<Series>& bands, double low, double high, std::size_t columns);

/// A map of at most so many columns and rows: neighbours become one cell, the greatest of them.
HeatMap downsample(const HeatMap& heat, std::size_t most);

}  // namespace cmt::output
