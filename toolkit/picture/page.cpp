#include "toolkit/picture/page.h"

#include "page_parts.h"  // made by CMake: the parts
#include "toolkit/picture/svg.h"
#include "toolkit/picture/svg_text.h"

namespace cmt::output {
namespace {

/// The bytes of a digest in base64 (RFC 4648), as a content policy wants them.
std::string base64(std::string_view hex) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bits_at = [hex](std::size_t bit) -> unsigned {
    if (bit / 4 >= hex.size()) return 0;
    const char digit = hex[bit / 4];
    const auto value = static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    return value >> (3 - bit % 4) & 1;
  };
  std::string text;
  for (std::size_t bit = 0; bit < hex.size() * 4; bit += 6) {
    unsigned value = 0;
    for (std::size_t i = 0; i < 6; ++i) value = value << 1 | bits_at(bit + i);
    text += alphabet[value];
  }
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string source(const PagePart& part) { return " 'sha256-" + base64(part.digest) + "'"; }

std::string element(std::string_view name, std::string_view text) {
  const std::string tag(name);
  return '<' + tag + '>' + std::string(text) + "</" + tag + ">\n";
}

/// JSON inside of HTML: no "<" may end the element that holds it.
std::string data(std::string_view id, std::string_view json) {
  std::string text = "<script type=\"application/json\" id=\"" + std::string(id) + "\">";
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text + "</script>\n";
}

std::string head(const Picture& picture) {
  std::string policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src";
  for (const PagePart& style : {page_style, svg_style, uplot_style}) policy += source(style);
  policy += "; script-src" + (page_zooms() ? source(uplot_script) + source(page_script) : std::string(" 'none'"));
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy + "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         element("title", SvgText::escape(picture.title)) + element("style", page_style.text);
}

/// What zooms, drawn by the scripts.
std::string zooming(const Picture& picture) {
  return element("style", svg_style.text) + element("style", uplot_style.text) + "</head>\n<body>\n" +
         element("h1", SvgText::escape(picture.title)) + element("p", SvgText::escape(picture.subtitle)) +
         "<p class=\"hint\">Drag to zoom, double-click to see all again.</p>\n<main id=\"panels\"></main>\n" +
         data("picture", page_json(picture)) + "<!-- uPlot:\n" + std::string(uplot_licence) + "-->\n" +
         element("script", uplot_script.text) + element("script", page_script.text);
}

std::string still(const Picture& picture) {
  return "</head>\n<body>\n" + to_svg(picture) + "<p class=\"hint\">Made without uPlot: this page does not zoom.</p>\n";
}

}  // namespace

bool page_zooms() { return !uplot_script.text.empty(); }

std::string to_html(const Picture& picture, std::string_view numbers) {
  return head(picture) + (page_zooms() ? zooming(picture) : still(picture)) + data("numbers", numbers) +
         "</body>\n</html>\n";
}

}  // namespace cmt::output
