#include "toolkit/picture/html_page.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "toolkit/picture/svg_parts.h"
#include "toolkit/threads/share_out.h"

namespace cmt::output {
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

/// A piece of a stream that deflate makes, behind another piece: what that ends with may be referred to. The last piece
/// ends the stream.
std::string deflated(std::string_view before, std::string_view piece, bool is_last) {
  z_stream stream{};
  constexpr int level = 5;  // 6 takes twice as long, and saves 5 % of a report of 12 MB
  constexpr int raw = -15, memory = 9;
  if (deflateInit2(&stream, level, Z_DEFLATED, raw, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("cannot compress the page's data");
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write there
  };
  if (!before.empty()) deflateSetDictionary(&stream, bytes(before), static_cast<uInt>(before.size()));
  constexpr std::size_t flush_size = 16;
  std::string packed(deflateBound(&stream, piece.size()) + flush_size, '\0');
  stream.next_in = bytes(piece);
  stream.avail_in = static_cast<uInt>(piece.size());
  stream.next_out = bytes(packed);
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
  packed.resize(stream.total_out);
  const bool is_done = result == (is_last ? Z_STREAM_END : Z_OK) && stream.avail_in == 0;
  deflateEnd(&stream);
  if (!is_done) throw std::runtime_error("cannot compress the page's data");
  return packed;
}

/// One stream, of which several threads make the pieces.
std::string gzip(std::string_view bytes, unsigned jobs) {
  constexpr std::size_t piece_size = 1 << 20, window = 1 << 15;
  const std::size_t count = std::max<std::size_t>((bytes.size() + piece_size - 1) / piece_size, 1);
  std::vector<std::string> pieces(count);
  threads::share_out(count, jobs, [&](std::size_t i, std::size_t) {
    const std::size_t begin = i * piece_size, known = std::min(begin, window);
    pieces[i] = deflated(bytes.substr(begin - known, known), bytes.substr(begin, piece_size), i + 1 == count);
  });
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);  // deflate, no name, no time, Unix
  for (const std::string& piece : pieces) packed += piece;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  for (const std::uint64_t number : {std::uint64_t{crc}, std::uint64_t{bytes.size()}}) {
    for (unsigned shift = 0; shift < 32; shift += 8) packed += static_cast<char>(number >> shift);
  }
  return packed;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += i + digit > bytes.size() ? '=' : alphabet[group >> (18 - 6 * digit) & 63];
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
  return "<script type=\"application/gzip\" id=\"" + std::string(id) + "\">" + base64(gzip(json, jobs)) + "</script>\n";
}

std::string licence_comment(std::string_view library, std::string_view licence) {
  return "<!-- " + std::string(library) + ":\n" + std::string(licence) + "-->\n";
}

}  // namespace cmt::output
