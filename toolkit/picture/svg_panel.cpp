// The axes, the legend and the series of a panel as SVG.

#include <algorithm>
#include <cmath>

#include "toolkit/picture/downsample.h"
#include "toolkit/picture/svg_parts.h"

namespace cmt::output {
namespace {

using Anchor = SvgText::Anchor;
constexpr double line_height = 15;

/// Those ticks within the axis, in their order, that keep a distance in pixels from the ones before.
template <class Pixel>
std::vector<Tick> ticks_with_room(const std::vector<Tick>& ticks, double low, double high, Pixel pixel,
                                  double distance) {
  std::vector<Tick> kept;
  for (const Tick& tick : ticks) {
    if (!(tick.at >= low && tick.at <= high)) continue;
    const bool free = std::all_of(kept.begin(), kept.end(), [&](const Tick& other) {
      return std::abs(pixel(other.at) - pixel(tick.at)) >= distance;
    });
    if (free) kept.push_back(tick);
  }
  return kept;
}

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label));
  return width;
}

/// "x y x y…": the points in pixels, with steps between them if asked for. Of consecutive points at one height only the
/// first and the last are written.
std::string path_points(const std::vector<double>& x, const std::vector<double>& y, const Frame& frame, bool steps) {
  std::vector<std::string> heights;
  for (const double height : y) heights.push_back(SvgText::number(frame.pixel_y(height)));
  std::string text;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool level = i > 0 && heights[i - 1] == heights[i];
    if (level && i + 1 < x.size() && heights[i] == heights[i + 1]) continue;
    const std::string x_text = SvgText::number(frame.pixel_x(x[i])) + ' ';
    if (steps && i > 0 && !level) text += ' ' + x_text + heights[i - 1];
    text += ' ' + x_text + heights[i];
  }
  return text;
}

/// The area between a line and the axis. A single point becomes a bar.
std::string area(std::vector<double> x, std::vector<double> y, const Frame& frame) {
  if (x.size() == 1) {
    const double width = (frame.x.high - frame.x.low) / 100;
    x[0] = std::min(x[0], frame.x.high - width);
    x.push_back(x[0] + width);
    y.push_back(y[0]);
  }
  const std::string bottom = SvgText::number(frame.bottom());
  return 'M' + SvgText::number(frame.pixel_x(x.front())) + ' ' + bottom + path_points(x, y, frame, false) + 'V' +
         bottom;
}

/// Draws the highest band first, each down to the axis, so that the next covers all but its own part.
void draw_bands(SvgText& svg, const Panel& panel, const Frame& frame) {
  std::vector<Series> bands;
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    if (panel.series[i].form != Series::Form::band) continue;
    bands.push_back(panel.series[i]);
    indexes.push_back(i);
  }
  bands = downsample_bands(bands, frame.x.low, frame.x.high, static_cast<std::size_t>(frame.width));
  if (bands.empty() || bands.front().x.empty()) return;
  for (std::size_t band = 1; band < bands.size(); ++band) {
    for (std::size_t i = 0; i < bands[band].y.size(); ++i) bands[band].y[i] += bands[band - 1].y[i];
  }
  for (std::size_t band = bands.size(); band-- > 0;) {
    svg.path(area(bands[band].x, bands[band].y, frame), "f" + series_colour(indexes[band]));
  }
}

}  // namespace

std::vector<Tick> ticks_x(const Panel& panel, const Frame& frame) {
  const auto pixel = [&](double at) { return frame.pixel_x(at); };
  if (!panel.x.ticks.empty()) {
    return ticks_with_room(panel.x.ticks, frame.x.low, frame.x.high, pixel, widest(panel.x.ticks) + 8);
  }
  const auto ticks = choose_ticks(panel.x.unit, panel.x.log, frame.x.low, frame.x.high,
                                  std::max(2, static_cast<int>(frame.width / 75)));
  return ticks_with_room(ticks, frame.x.low, frame.x.high, pixel, widest(ticks) + 6);
}

std::vector<Tick> ticks_y(const Panel& panel, const Frame& frame) {
  const auto pixel = [&](double at) { return frame.pixel_y(at); };
  const auto ticks = !panel.y.ticks.empty() ? panel.y.ticks
                                            : choose_ticks(panel.y.unit, panel.y.log, frame.y.low, frame.y.high,
                                                           std::max(2, static_cast<int>(frame.height / 34)));
  return ticks_with_room(ticks, frame.y.low, frame.y.high, pixel, line_height);
}

void draw_axes(SvgText& svg, const Panel& panel, const Frame& frame) {
  double label_width = 0;
  for (const Tick& tick : ticks_y(panel, frame)) {
    const double y = frame.pixel_y(tick.at);
    svg.line(frame.left - 4, y, panel.heat ? frame.left : frame.right(), y, panel.heat ? "axis" : "grid");
    svg.words(frame.left - 7, y + 4, Anchor::end, "label", tick.label);
    label_width = std::max(label_width, text_width(tick.label));
  }
  for (const Tick& tick : ticks_x(panel, frame)) {
    const double x = frame.pixel_x(tick.at);
    svg.line(x, frame.bottom(), x, frame.bottom() + 4, "axis");
    svg.words(x, frame.bottom() + 17, Anchor::middle, "label", tick.label);
  }
  for (const double at : panel.y.breaks) {
    const double y = frame.pixel_y(at);
    svg.line(frame.left - 4, y, frame.right(), y, "break");
  }
  svg.line(frame.left, frame.bottom(), frame.right(), frame.bottom(), "axis");
  svg.line(frame.left, frame.top, frame.left, frame.bottom(), "axis");
  svg.words(frame.left + frame.width / 2, frame.bottom() + 34, Anchor::middle, "name", panel.x.title);
  if (!panel.y.title.empty()) svg.words_up(14, frame.top + frame.height / 2, "name", panel.y.title);
}

double draw_legend(SvgText* svg, const Panel& panel, double left, double top, double width) {
  if (panel.heat || panel.series.empty()) return 0;
  double x = left;
  double y = top;
  std::size_t index = 0;
  for (const Series& series : panel.series) {
    const double item = 18 + text_width(series.name) + 16;
    if (x > left && x + item > left + width) {
      x = left;
      y += 18;
    }
    if (svg != nullptr) {
      const bool band = series.form == Series::Form::band;
      svg->rect(x, y + (band ? 0 : 4), 12, band ? 11 : 3, (band ? "f" : "k") + series_colour(index));
      svg->words(x + 17, y + 10, Anchor::start, "label", series.name);
    }
    x += item;
    ++index;
  }
  return y - top + 20;
}

void draw_series(SvgText& svg, const Panel& panel, const Frame& frame) {
  draw_bands(svg, panel, frame);
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    if (series.form == Series::Form::band) continue;
    const Series seen = downsample(series, frame.x.low, frame.x.high, static_cast<std::size_t>(frame.width));
    if (seen.x.size() == 1) {
      svg.rect(frame.pixel_x(seen.x[0]) - 2, frame.pixel_y(seen.y[0]) - 2, 4, 4, "k" + series_colour(i));
    } else {
      const std::string path = path_points(seen.x, seen.y, frame, series.form == Series::Form::step);
      if (!path.empty()) svg.path('M' + path.substr(1), "l" + series_colour(i));
    }
  }
}

std::string series_colour(std::size_t index) { return std::to_string(index % series_colours); }

}  // namespace cmt::output
