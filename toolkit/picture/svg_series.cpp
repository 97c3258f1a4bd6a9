#include <algorithm>
#include <vector>

#include "toolkit/picture/downsample.h"
#include "toolkit/picture/svg_parts.h"

namespace cmt::output {
namespace {

/// "x y x y…": the points in pixels, by steps where wanted. Of points at one height in a row the first and the last
/// are enough.
std::string points(const std::vector<double>& x, const std::vector<double>& y, const Frame& frame, bool steps) {
  std::vector<std::string> heights;
  for (const double height : y) heights.push_back(SvgText::number(frame.place_y(height)));
  std::string text;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool level = i > 0 && heights[i - 1] == heights[i];
    if (level && i + 1 < x.size() && heights[i] == heights[i + 1]) continue;
    const std::string place = SvgText::number(frame.place_x(x[i])) + ' ';
    if (steps && i > 0 && !level) text += ' ' + place + heights[i - 1];
    text += ' ' + place + heights[i];
  }
  return text;
}

/// The area between a line and the axis; of a single point a bar.
std::string area(std::vector<double> x, std::vector<double> y, const Frame& frame) {
  if (x.size() == 1) {
    const double width = (frame.x.high - frame.x.low) / 100;
    x[0] = std::min(x[0], frame.x.high - width);
    x.push_back(x[0] + width);
    y.push_back(y[0]);
  }
  const std::string bottom = SvgText::number(frame.bottom());
  return 'M' + SvgText::number(frame.place_x(x.front())) + ' ' + bottom + points(x, y, frame, false) + 'V' + bottom;
}

/// The highest first, each down to the axis: the next one covers what is not its own.
void draw_bands(SvgText& svg, const Panel& panel, const Frame& frame) {
  std::vector<Series> bands;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    if (panel.series[i].form != Series::Form::band) continue;
    bands.push_back(panel.series[i]);
    places.push_back(i);
  }
  bands = downsample_bands(bands, frame.x.low, frame.x.high, static_cast<std::size_t>(frame.width));
  if (bands.empty() || bands.front().x.empty()) return;
  for (std::size_t band = 1; band < bands.size(); ++band) {
    for (std::size_t i = 0; i < bands[band].y.size(); ++i) bands[band].y[i] += bands[band - 1].y[i];
  }
  for (std::size_t band = bands.size(); band-- > 0;) {
    svg.path(area(bands[band].x, bands[band].y, frame), "f" + series_look(places[band]));
  }
}

}  // namespace

void draw_series(SvgText& svg, const Panel& panel, const Frame& frame) {
  draw_bands(svg, panel, frame);
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    if (series.form == Series::Form::band) continue;
    const Series seen = downsample(series, frame.x.low, frame.x.high, static_cast<std::size_t>(frame.width));
    if (seen.x.size() == 1) {
      svg.rect(frame.place_x(seen.x[0]) - 2, frame.place_y(seen.y[0]) - 2, 4, 4, "k" + series_look(i));
    } else {
      const std::string way = points(seen.x, seen.y, frame, series.form == Series::Form::step);
      if (!way.empty()) svg.path('M' + way.substr(1), "l" + series_look(i));
    }
  }
}

}  // namespace cmt::output
