// Writes the elements of a page, and base64.

#include "toolkit/picture/html_page.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "toolkit/picture/svg_parts.h"

namespace cmt::picture {
namespace {

std::string bytes_of_hex(std::string_view hex) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  }
  return bytes;
}

/// The sources of one directive of a content policy.
std::string policy_sources(const std::vector<PagePart>& parts) {
  std::string sources;
  for (const PagePart& part : parts) sources += " 'sha256-" + base64(bytes_of_hex(part.digest)) + "'";
  return sources.empty() ? " 'none'" : sources;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [bytes](std::size_t i) {
    return i < bytes.size() ? std::uint32_t{static_cast<unsigned char>(bytes[i])} : 0U;
  };
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t digit = 0; digit < digits; ++digit) out[digit] = alphabet[group >> (18 - 6 * digit) & 63];
    out += 4;
  }
  return text;
}

std::string page_head(std::string_view title, const std::vector<PagePart>& styles,
                      const std::vector<PagePart>& scripts) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action "
         "'none'; "
         "style-src" +
         policy_sources(styles) + "; script-src" + policy_sources(scripts) +
         "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         element("title", SvgText::escape(title));
}

std::string element(std::string_view name, std::string_view text) {
  const std::string tag(name);
  return '<' + tag + '>' + std::string(text) + "</" + tag + ">\n";
}

/// JSON inside HTML, without any "<", which could end the element.
std::string data_element(std::string_view id, std::string_view json) {
  std::string text = "<script type=\"application/json\" id=\"" + std::string(id) + "\">";
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text + "</script>\n";
}

std::string packed_data_element(std::string_view id, std::string_view json, unsigned jobs) {
  PackedData data(jobs);
  data.append(json);
  return packed_data_element(id, std::move(data));
}

std::string packed_data_element(std::string_view id, PackedData data) {
  return "<script type=\"application/gzip\" id=\"" + std::string(id) + "\">" + base64(data.finish()) + "</script>\n";
}

std::string licence_comment(std::string_view library, std::string_view licence) {
  return "<!-- " + std::string(library) + ":\n" + std::string(licence) + "-->\n";
}

}  // namespace cmt::picture
