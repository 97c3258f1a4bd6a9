#pragma once

#include <string>
#include <string_view>

#include "toolkit/picture/axis.h"
#include "toolkit/picture/picture.h"
#include "toolkit/picture/ranges.h"
#include "toolkit/picture/svg_text.h"

/// The parts of a panel as SVG. Internal to svg*.cpp.
namespace cmt::output {

inline constexpr int heat_levels = 12;       ///< colours of a map
inline constexpr int series_looks = 8;       ///< colours of series
inline constexpr double letter_width = 6.6;  ///< of the labels' font, at most in the mean

inline double text_width(std::string_view text) { return static_cast<double>(text.size()) * letter_width; }

/// The rectangle between a panel's axes, and where numbers lie in it.
struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  Range x{};
  Range y{};
  bool log_x = false;
  bool log_y = false;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
  double place_x(double number) const { return left + width * place(number, x, log_x); }
  double place_y(double number) const { return bottom() - height * place(number, y, log_y); }

 private:
  static double place(double number, const Range& range, bool log) {
    const double low = to_scale(range.low, log);
    return (to_scale(number, log) - low) / (to_scale(range.high, log) - low);
  }
};

/// The ticks of each axis, as many as have room.
std::vector<Tick> ticks_x(const Panel& panel, const Frame& frame);
std::vector<Tick> ticks_y(const Panel& panel, const Frame& frame);

void draw_axes(SvgText& svg, const Panel& panel, const Frame& frame);
void draw_series(SvgText& svg, const Panel& panel, const Frame& frame);
void draw_heat(SvgText& svg, const HeatMap& heat, const Frame& frame);

/// Heights that a map needs above itself for its marginal and the row that is apart, and widths to the right.
double heat_room_above(const HeatMap& heat);
double heat_room_right(const HeatMap& heat);

/// The names of the series in lines of at most `width`; returns the height. Draws nothing where `svg` is null.
double draw_legend(SvgText* svg, const Panel& panel, double left, double top, double width);

/// "s0" to "s7", and for more series than looks the same again.
std::string series_look(std::size_t index);

/// The number of the colour for a cell, from 0 to heat_levels - 1.
int heat_level(const HeatMap& heat, const Range& range, double cell);

}  // namespace cmt::output
