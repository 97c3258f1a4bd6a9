#pragma once

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// From where to where an axis goes; never empty, always finite.
struct Range {
  double low = 0;
  double high = 1;
};

/// The x axis of a panel of this picture.
Range x_range(const Picture& picture, const Panel& panel);

/// The y axis: from 0 to a round number, or as far as the map goes.
Range y_range(const Panel& panel);

/// From the colour for the least to that for the most: from 1 where logarithmic, else from 0; shares go up to 1.
Range colour_range(const HeatMap& heat);

}  // namespace cmt::output
