#include "toolkit/output/utf8.h"

#include <algorithm>

namespace cmt::output {

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

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? replacement_character : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::size_t utf8_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string to_line(std::string_view text) {
  std::string line = to_utf8(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace cmt::output
