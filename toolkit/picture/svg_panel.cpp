#include <algorithm>
#include <cmath>

#include "toolkit/picture/svg_parts.h"

namespace cmt::output {
namespace {

using Anchor = SvgText::Anchor;
constexpr double line_height = 15;

/// The ticks of an axis that gives them: in their order, those that keep their distance from the ones before.
template <class Place>
std::vector<Tick> those_with_room(const std::vector<Tick>& ticks, double low, double high, Place place,
                                  double distance) {
  std::vector<Tick> kept;
  for (const Tick& tick : ticks) {
    if (!(tick.at >= low && tick.at <= high)) continue;
    const bool free = std::all_of(kept.begin(), kept.end(), [&](const Tick& other) {
      return std::abs(place(other.at) - place(tick.at)) >= distance;
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

}  // namespace

std::vector<Tick> ticks_x(const Panel& panel, const Frame& frame) {
  const auto place = [&](double at) { return frame.place_x(at); };
  if (!panel.x.ticks.empty()) {
    return those_with_room(panel.x.ticks, frame.x.low, frame.x.high, place, widest(panel.x.ticks) + 8);
  }
  const auto ticks = choose_ticks(panel.x.unit, panel.x.log, frame.x.low, frame.x.high,
                                  std::max(2, static_cast<int>(frame.width / 75)));
  return those_with_room(ticks, frame.x.low, frame.x.high, place, widest(ticks) + 6);
}

std::vector<Tick> ticks_y(const Panel& panel, const Frame& frame) {
  const auto place = [&](double at) { return frame.place_y(at); };
  const auto ticks = !panel.y.ticks.empty() ? panel.y.ticks
                                            : choose_ticks(panel.y.unit, panel.y.log, frame.y.low, frame.y.high,
                                                           std::max(2, static_cast<int>(frame.height / 34)));
  return those_with_room(ticks, frame.y.low, frame.y.high, place, line_height);
}

void draw_axes(SvgText& svg, const Panel& panel, const Frame& frame) {
  double label_width = 0;
  for (const Tick& tick : ticks_y(panel, frame)) {
    const double y = frame.place_y(tick.at);
    svg.line(frame.left - 4, y, panel.heat ? frame.left : frame.right(), y, panel.heat ? "axis" : "grid");
    svg.words(frame.left - 7, y + 4, Anchor::end, "label", tick.label);
    label_width = std::max(label_width, text_width(tick.label));
  }
  for (const Tick& tick : ticks_x(panel, frame)) {
    const double x = frame.place_x(tick.at);
    svg.line(x, frame.bottom(), x, frame.bottom() + 4, "axis");
    svg.words(x, frame.bottom() + 17, Anchor::middle, "label", tick.label);
  }
  for (const double at : panel.y.breaks) {
    const double y = frame.place_y(at);
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
      svg->rect(x, y + (band ? 0 : 4), 12, band ? 11 : 3, (band ? "f" : "k") + series_look(index));
      svg->words(x + 17, y + 10, Anchor::start, "label", series.name);
    }
    x += item;
    ++index;
  }
  return y - top + 20;
}

std::string series_look(std::size_t index) { return std::to_string(index % series_looks); }

}  // namespace cmt::output
