/// Shared by the files that draw SVG: a writer of elements, positions in a panel, and the reduction of long series.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toolkit/picture/axis.h"
#include "toolkit/picture/picture.h"

/// The parts of a picture as SVG. Internal to this folder.
namespace cmt::picture {

/// Writes an SVG element by element. Lengths are pixels, with at most one digit after the point. An element has a class
/// instead of colours and fonts, which svg.css gives.
class SvgText {
 public:
  enum class Anchor { start, middle, end };

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void rect(double x, double y, double width, double height, std::string_view style);
  void path(std::string_view steps, std::string_view style);
  void words(double x, double y, Anchor anchor, std::string_view style, std::string_view words);

  /// The same, rotated to be read upwards.
  void words_up(double x, double y, std::string_view style, std::string_view words);

  std::string finish() { return std::move(text_); }

  /// "12.3", "12".
  static std::string number(double number);

  /// The text with XML's special characters escaped. Bytes that are not UTF-8, and
  /// characters that a terminal would obey, become U+FFFD.
  static std::string escape(std::string_view text);

 private:
  void attributes(std::initializer_list<std::pair<const char*, double>> numbers);
  void end_shape(std::string_view style);
  void end_words(std::string_view style, std::string_view words);

  std::string text_;
};

inline bool is_band(const Series& series) {
  return series.form == Series::Form::band || series.form == Series::Form::step_band;
}

inline bool is_points(const Series& series) { return series.form == Series::Form::point; }

inline constexpr double letter_width = 6.6;  ///< of the labels' font, at most in the mean

inline double text_width(std::string_view text) { return static_cast<double>(text.size()) * letter_width; }

/// Where a number is on an axis or a scale of colours, from 0 for the range's low end to 1 for its high end.
inline double position_between(double number, const Range& range, bool log) {
  const double low = to_scale(range.low, log);
  return (to_scale(number, log) - low) / (to_scale(range.high, log) - low);
}

/// The rectangle between a panel's axes, and the pixels of numbers in it.
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
  double pixel_x(double number) const { return left + width * position_between(number, x, log_x); }
  double pixel_y(double number) const { return bottom() - height * position_between(number, y, log_y); }
};

void draw_heat(SvgText& svg, const HeatMap& heat, const Frame& frame);

/// The height that a map needs above itself for its marginal and the row apart, and the width to its right.
double heat_room_above(const HeatMap& heat);
double heat_room_right(const HeatMap& heat);

/// Reduces a series to the points that so many columns of pixels can show. Each column keeps the first, the lowest, the
/// highest and the last point, in their order. So no peak is lost or moved by more than a column, and a picture's size
/// does not depend on the length of the series. Points that are not finite, or outside `low` to `high`, are left out.
Series downsample(const Series& series, double low, double high, std::size_t columns);

/// The same for bands that lie on each other. Each column keeps the points where the sum is least and greatest, at the
/// same x for all bands. Longer bands than the first are cut, shorter ones continue with 0.
std::vector<Series> downsample_bands(const std::vector<Series>& bands, double low, double high, std::size_t columns);

/// All series of a panel, its bands together.
std::vector<Series> downsample(const std::vector<Series>& series, double low, double high, std::size_t columns);

/// A map of at most so many columns and rows. Neighbouring cells become one, with the greatest of their values.
HeatMap downsample(const HeatMap& heat, std::size_t most);

}  // namespace cmt::picture
