// A picture as SVG: its panels, with their axes, legends and series, below each other.

#include <algorithm>
#include <cmath>

#include "libcmt/text/utf8.h"
#include "page_parts.h"  // made by CMake: svg_style
#include "toolkit/output/numbers.h"
#include "toolkit/picture/svg_parts.h"

namespace cmt::picture {
namespace {

using Anchor = SvgText::Anchor;

constexpr double picture_width = 960;
constexpr double plot_height = 300;
constexpr double heat_height = 380;
constexpr double below_plot = 58;

constexpr double line_height = 15;
constexpr int series_colours = 8;

/// The number of a series' colour, "0" to "7"; the ninth series has the first's again.
std::string series_colour(const Series& series, std::size_t index) {
  return std::to_string(series.look.value_or(static_cast<unsigned>(index % series_colours)) % series_colours);
}

/// Selects ticks within the axis, in their order, that keep a distance in pixels from the ones before.
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

/// "x y x y…": the points in pixels, with steps between them if asked for. A run of points at one height is written as
/// its first and its last.
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
std::string area(std::vector<double> x, std::vector<double> y, const Frame& frame, bool steps) {
  if (x.size() == 1) {
    const double width = (frame.x.high - frame.x.low) / 100;
    x[0] = std::min(x[0], frame.x.high - width);
    x.push_back(x[0] + width);
    y.push_back(y[0]);
  }
  const std::string bottom = SvgText::number(frame.bottom());
  return 'M' + SvgText::number(frame.pixel_x(x.front())) + ' ' + bottom + path_points(x, y, frame, steps) + 'V' +
         bottom;
}

/// Draws the highest band first, each down to the axis, so that the next covers all but its own part.
void draw_bands(SvgText& svg, const std::vector<Series>& all, const Frame& frame) {
  std::vector<std::pair<std::string, std::string>> areas;  // with their classes
  std::vector<double> tops;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_band(all[i]) || all[i].x.empty()) continue;
    tops.resize(all[i].y.size());
    for (std::size_t point = 0; point < tops.size(); ++point) tops[point] += all[i].y[point];
    // An edge separates bands of one colour.
    const std::string style = "f" + series_colour(all[i], i) + (all[i].look ? " edge" : "");
    areas.emplace_back(area(all[i].x, tops, frame, all[i].form == Series::Form::step_band), style);
  }
  for (auto each = areas.rbegin(); each != areas.rend(); ++each) svg.path(each->first, each->second);
}

/// The ticks of each axis, as many as have room.
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

/// The names of the series in lines of at most `width`; returns the height.
double draw_legend(SvgText& svg, const Panel& panel, double left, double top, double width) {
  if (panel.heat || panel.series.empty() || is_points(panel.series.front())) return 0;
  double x = left;
  double y = top;
  std::size_t index = 0;
  for (const Series& series : panel.series) {
    const double item = 18 + text_width(series.name) + 16;
    if (x > left && x + item > left + width) {
      x = left;
      y += 18;
    }
    const bool band = is_band(series);
    svg.rect(x, y + (band ? 0 : 4), 12, band ? 11 : 3, (band ? "f" : "k") + series_colour(series, index));
    svg.words(x + 17, y + 10, Anchor::start, "label", series.name);
    x += item;
    ++index;
  }
  return y - top + 20;
}

/// A mark for each point, a cross over where it may lie, and the name.
void draw_points(SvgText& svg, const Series& series, const std::string& colour, const Frame& frame) {
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
    const double x = frame.pixel_x(series.x[i]), y = frame.pixel_y(series.y[i]);
    if (i < series.within.size()) {
      const Series::Within& within = series.within[i];
      svg.line(frame.pixel_x(within.x_low), y, frame.pixel_x(within.x_high), y, "l" + colour);
      svg.line(x, frame.pixel_y(within.y_low), x, frame.pixel_y(within.y_high), "l" + colour);
    }
    svg.rect(x - 4, y - 4, 8, 8, "k" + colour);
    const bool is_right = x + 8 + text_width(series.name) > frame.right();
    svg.words(is_right ? x - 8 : x + 8, y - 7, is_right ? Anchor::end : Anchor::start, "label", series.name);
  }
}

void draw_series(SvgText& svg, const Panel& panel, const Frame& frame) {
  const std::vector<Series> all =
      downsample(panel.series, frame.x.low, frame.x.high, static_cast<std::size_t>(frame.width));
  draw_bands(svg, all, frame);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Series& seen = all[i];
    if (is_band(seen)) continue;
    if (is_points(seen)) {
      draw_points(svg, seen, series_colour(seen, i), frame);
      continue;
    }
    if (seen.x.size() == 1) {
      svg.rect(frame.pixel_x(seen.x[0]) - 2, frame.pixel_y(seen.y[0]) - 2, 4, 4, "k" + series_colour(seen, i));
    } else {
      const std::string path = path_points(seen.x, seen.y, frame, seen.form == Series::Form::step);
      if (!path.empty()) svg.path('M' + path.substr(1), "l" + series_colour(seen, i));
    }
  }
}

bool is_empty(const Panel& panel) {
  if (panel.heat && panel.heat->columns() > 0 && panel.heat->rows() > 0) return false;
  return std::all_of(panel.series.begin(), panel.series.end(), [](const Series& series) { return series.x.empty(); });
}

Frame frame_of(const Picture& picture, const Panel& panel) {
  Frame frame;
  frame.x = x_range(picture, panel);
  frame.y = y_range(panel);
  frame.log_x = panel.x.log;
  frame.log_y = panel.y.log;
  frame.height = panel.heat ? heat_height : plot_height;
  return frame;
}

/// The room for labels left of the axes. It is the same for all panels, so that equal times lie below each other.
double room_left(const Picture& picture) {
  double room = 40;
  for (const Panel& panel : picture.panels) {
    for (const Tick& tick : ticks_y(panel, frame_of(picture, panel))) {
      room = std::max(room, text_width(tick.label));
    }
    if (panel.heat && !panel.heat->apart.empty()) room = std::max(room, text_width(panel.heat->apart_title));
  }
  return room + 38;
}

double room_right(const Picture& picture) {
  double room = 28;
  for (const Panel& panel : picture.panels) {
    if (panel.heat) room = std::max(room, heat_room_right(*panel.heat));
  }
  return room;
}

/// Draws a panel from `top` on, and returns where the next may begin.
double draw_panel(SvgText& svg, const Picture& picture, const Panel& panel, double top) {
  Frame frame = frame_of(picture, panel);
  frame.left = room_left(picture);
  frame.width = picture_width - frame.left - room_right(picture);
  svg.words(frame.left, top + 14, Anchor::start, "panel", panel.title);
  frame.top = top + 26 + draw_legend(svg, panel, frame.left, top + 26, frame.width);
  if (panel.heat) frame.top += heat_room_above(*panel.heat);
  if (is_empty(panel)) {
    svg.words(frame.left + frame.width / 2, frame.top + frame.height / 2, Anchor::middle, "name", "nothing to show");
  } else {
    if (panel.heat) draw_heat(svg, *panel.heat, frame);
    if (!panel.heat) draw_axes(svg, panel, frame);  // its grid lies below
    draw_series(svg, panel, frame);
    if (panel.heat) draw_axes(svg, panel, frame);
  }
  return frame.bottom() + below_plot;
}

/// With blanks that no viewer draws as one.
std::string with_wide_blanks(std::string_view line) {
  std::string text;
  for (const char c : line) text += c == ' ' ? std::string("\u00a0") : std::string(1, c);
  return text;
}

/// Returns the bottom of it.
double draw_table(SvgText& svg, std::string_view table, double top) {
  double bottom = top;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    bottom += line_height;
    if (!line.empty()) svg.words(20, bottom, Anchor::start, "mono", with_wide_blanks(line));
  }
  return bottom == top ? top : bottom + line_height;
}

}  // namespace

std::string to_svg(const Picture& picture) {
  SvgText body;
  double bottom = 66;
  body.words(20, 28, Anchor::start, "title", picture.title);
  body.words(20, 47, Anchor::start, "sub", picture.subtitle);
  for (const Panel& panel : picture.panels) bottom = draw_panel(body, picture, panel, bottom);
  bottom = draw_table(body, picture.table, bottom);
  const std::string width = SvgText::number(picture_width);
  const std::string height = SvgText::number(bottom);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
                    "\" viewBox=\"0 0 " + width + ' ' + height + "\" role=\"img\">\n<title>" +
                    SvgText::escape(picture.title) + "</title>\n<desc>" + SvgText::escape(picture.subtitle) +
                    "</desc>\n<style>";
  svg += svg_style.text;
  svg += "</style>\n<rect width=\"" + width + "\" height=\"" + height + "\" class=\"ground\"/>\n";
  return svg + body.finish() + "</svg>\n";
}

std::string SvgText::number(double number) {
  std::string text = output::fixed(std::isfinite(number) ? number : 0, 1);
  if (text.ends_with(".0")) text.erase(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string SvgText::escape(std::string_view text) {
  std::string escaped;
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = std::max<std::size_t>(1, text::utf8_length(text));
    const char c = text[0];
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (text::control_length(text) != 0 || text::utf8_length(text) == 0)
      escaped += text::replacement_character;
    else
      escaped += text.substr(0, length);
  }
  return escaped;
}

void SvgText::attributes(std::initializer_list<std::pair<const char*, double>> numbers) {
  for (const auto& [name, value] : numbers) text_ += ' ' + std::string(name) + "=\"" + number(value) + '"';
}

void SvgText::end_shape(std::string_view style) { text_ += " class=\"" + std::string(style) + "\"/>\n"; }

void SvgText::end_words(std::string_view style, std::string_view words) {
  text_ += " class=\"" + std::string(style) + "\">" + escape(words) + "</text>\n";
}

void SvgText::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += "<line";
  attributes({{"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
  end_shape(style);
}

void SvgText::rect(double x, double y, double width, double height, std::string_view style) {
  text_ += "<rect";
  attributes({{"x", x}, {"y", y}, {"width", width}, {"height", height}});
  end_shape(style);
}

void SvgText::path(std::string_view steps, std::string_view style) {
  if (steps.empty()) return;
  text_ += "<path d=\"" + std::string(steps) + '"';
  end_shape(style);
}

void SvgText::words(double x, double y, Anchor anchor, std::string_view style, std::string_view words) {
  text_ += "<text";
  attributes({{"x", x}, {"y", y}});
  if (anchor != Anchor::start) text_ += anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  end_words(style, words);
}

void SvgText::words_up(double x, double y, std::string_view style, std::string_view words) {
  text_ += "<text text-anchor=\"middle\" transform=\"translate(" + number(x) + ' ' + number(y) + ") rotate(-90)\"";
  end_words(style, words);
}

}  // namespace cmt::picture
