#include <algorithm>
#include <cmath>

#include "page_parts.h"  // made by CMake: svg_style
#include "toolkit/output/numbers.h"
#include "toolkit/picture/svg_parts.h"

namespace cmt::output {
namespace {

using Anchor = SvgText::Anchor;

constexpr double picture_width = 960;
constexpr double plot_height = 300;
constexpr double heat_height = 380;
constexpr double below_plot = 58;

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
  frame.top = top + 26 + draw_legend(&svg, panel, frame.left, top + 26, frame.width);
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

}  // namespace

std::string to_svg(const Picture& picture) {
  SvgText body;
  double bottom = 66;
  body.words(20, 28, Anchor::start, "title", picture.title);
  body.words(20, 47, Anchor::start, "sub", picture.subtitle);
  for (const Panel& panel : picture.panels) bottom = draw_panel(body, picture, panel, bottom);
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
  std::string text = fixed(std::isfinite(number) ? number : 0, 1);
  if (text.ends_with(".0")) text.erase(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string SvgText::escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      escaped += "\xef\xbf\xbd";
    else
      escaped += c;
  }
  return escaped;
}

void SvgText::attributes(std::initializer_list<std::pair<const char*, double>> numbers) {
  for (const auto& [name, value] : numbers) text_ += ' ' + std::string(name) + "=\"" + number(value) + '"';
}

void SvgText::class_attribute(std::string_view style) {
  text_ += " class=\"";
  text_ += style;
  text_ += '"';
}

void SvgText::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += "<line";
  attributes({{"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
  class_attribute(style);
  text_ += "/>\n";
}

void SvgText::rect(double x, double y, double width, double height, std::string_view style) {
  text_ += "<rect";
  attributes({{"x", x}, {"y", y}, {"width", width}, {"height", height}});
  class_attribute(style);
  text_ += "/>\n";
}

void SvgText::path(std::string_view steps, std::string_view style) {
  if (steps.empty()) return;
  text_ += "<path d=\"";
  text_ += steps;
  text_ += '"';
  class_attribute(style);
  text_ += "/>\n";
}

void SvgText::words(double x, double y, Anchor anchor, std::string_view style, std::string_view words) {
  text_ += "<text";
  attributes({{"x", x}, {"y", y}});
  if (anchor != Anchor::start) text_ += anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  class_attribute(style);
  text_ += '>' + escape(words) + "</text>\n";
}

void SvgText::words_up(double x, double y, std::string_view style, std::string_view words) {
  text_ += "<text text-anchor=\"middle\" transform=\"translate(" + number(x) + ' ' + number(y) + ") rotate(-90)\"";
  class_attribute(style);
  text_ += '>' + escape(words) + "</text>\n";
}

}  // namespace cmt::output
