#include "toolkit/picture/svg_text.h"

#include <cmath>

#include "toolkit/output/numbers.h"

namespace cmt::output {

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

void SvgText::attribute(std::string_view name, double value) {
  text_ += ' ';
  text_ += name;
  text_ += "=\"" + number(value) + "\"";
}

void SvgText::look(std::string_view look) {
  text_ += " class=\"";
  text_ += look;
  text_ += '"';
}

void SvgText::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += "<line";
  attribute("x1", x1);
  attribute("y1", y1);
  attribute("x2", x2);
  attribute("y2", y2);
  look(style);
  text_ += "/>\n";
}

void SvgText::rect(double x, double y, double width, double height, std::string_view style) {
  text_ += "<rect";
  attribute("x", x);
  attribute("y", y);
  attribute("width", width);
  attribute("height", height);
  look(style);
  text_ += "/>\n";
}

void SvgText::path(std::string_view steps, std::string_view style) {
  if (steps.empty()) return;
  text_ += "<path d=\"";
  text_ += steps;
  text_ += '"';
  look(style);
  text_ += "/>\n";
}

void SvgText::words(double x, double y, Anchor anchor, std::string_view style, std::string_view words) {
  text_ += "<text";
  attribute("x", x);
  attribute("y", y);
  if (anchor != Anchor::start) text_ += anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  look(style);
  text_ += '>' + escape(words) + "</text>\n";
}

void SvgText::words_up(double x, double y, std::string_view style, std::string_view words) {
  text_ += "<text text-anchor=\"middle\" transform=\"translate(" + number(x) + ' ' + number(y) + ") rotate(-90)\"";
  look(style);
  text_ += '>' + escape(words) + "</text>\n";
}

}  // namespace cmt::output
