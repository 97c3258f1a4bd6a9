// Finds well-formed UTF-8 by the table of the Unicode standard (table 3-7), and the characters that a terminal obeys.

#include "libcmt/text/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace cmt::text {
namespace {

/// `text` as UTF-8, with a blank in place of each character for which `is_blank(rest)` is true. `rest` is the text from
/// the character on.
template <class IsBlank>
std::string cleaned(std::string_view text, IsBlank is_blank) {
  std::string out;
  out.reserve(text.size());
  const auto may_change = [](unsigned char c) { return c < ' ' || c > '~'; };
  for (;;) {
    const auto plain = static_cast<std::size_t>(std::find_if(text.begin(), text.end(), may_change) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    if (length == 0)
      out += replacement_character;
    else if (is_blank(text))
      out += ' ';
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xc2 && byte(0) < 0xe0) return follows(1) ? 2 : 0;
  if ((byte(0) & 0xf0) == 0xe0) {
    const bool overlong = byte(0) == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = byte(0) == 0xed && byte(1) >= 0xa0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (byte(0) < 0xf0 || byte(0) > 0xf4) return 0;
  const bool outside = (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return follows(1) && follows(2) && follows(3) && !outside ? 4 : 0;
}

std::size_t control_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (text.empty()) return 0;
  if (byte(0) < 0x80) return is_control(text[0]) ? 1 : 0;
  const auto is_between = [](unsigned number, unsigned first, unsigned last) {
    return number >= first && number <= last;
  };
  if (byte(0) == 0xc2) return is_between(byte(1), 0x80, 0x9f) ? 2 : 0;  // U+0080 to U+009F
  if (byte(0) == 0xd8) return byte(1) == 0x9c ? 2 : 0;                  // U+061C
  if (byte(0) != 0xe2) return 0;
  if (byte(1) == 0x80 && (is_between(byte(2), 0x8e, 0x8f) || is_between(byte(2), 0xaa, 0xae)))
    return 3;                                                         // U+200E, U+200F, U+202A to U+202E
  return byte(1) == 0x81 && is_between(byte(2), 0xa6, 0xa9) ? 3 : 0;  // U+2066 to U+2069
}

/// The highest bits of those of eight bytes that are neither printable ASCII nor a tab. No sum or difference goes
/// beyond its byte.
static std::uint64_t not_plain_ascii(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101, tops = ones * 0x80;
  std::uint64_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  const std::uint64_t low = bytes & ~tops;
  const std::uint64_t controls = ~((low | tops) - ones * 0x20), tabs = ~((low ^ ones * '\t') + ones * 0x7f),
                      del = low + ones;
  return (bytes | (controls & ~tabs) | del) & tops;
}

/// Lines of traces have some thirty bytes: too few for vectors. The last eight bytes may overlap those before.
static bool is_plain_ascii(std::string_view text) {
  if (text.size() < sizeof(std::uint64_t)) {
    std::array<char, sizeof(std::uint64_t)> padded;
    padded.fill(' ');
    std::copy(text.begin(), text.end(), padded.begin());
    return not_plain_ascii(padded.data()) == 0;
  }
  const char* const last = text.data() + text.size() - sizeof(std::uint64_t);
  std::uint64_t found = not_plain_ascii(last);
  for (const char* at = text.data(); at < last; at += sizeof(std::uint64_t)) found |= not_plain_ascii(at);
  return found == 0;
}

bool is_plain(std::string_view text) {
  if (is_plain_ascii(text)) return true;
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = utf8_length(text);
    if (length == 0 || (control_length(text) != 0 && text[0] != '\t')) return false;
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  return cleaned(text, [](std::string_view) { return false; });
}

std::string to_lines(std::string_view text) {
  return cleaned(text, [](std::string_view rest) {
    return control_length(rest) != 0 && rest[0] != '\n' && rest[0] != '\t' && !rest.starts_with("\r\n");
  });
}

std::string to_line(std::string_view text) {
  return cleaned(text, [](std::string_view rest) { return control_length(rest) != 0; });
}

std::size_t utf8_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace cmt::text
