// Writes JSON as json.h describes.

#include "toolkit/output/json.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "libcmt/text/utf8.h"

namespace cmt::output {
namespace {

/// The escape sequence of a character in a JSON string. Empty if it needs none. Characters that a terminal would obey
/// are below U+10000.
std::string escape(std::string_view character) {
  constexpr std::string_view named = "\"\\\n\t\r", letters = "\"\\ntr";
  if (const auto at = named.find(character); at != named.npos) return {'\\', letters[at]};
  if (text::control_length(character) == 0) return {};
  constexpr std::array<unsigned, 4> first_mask{0, 0x7f, 0x1f, 0x0f};
  unsigned code = static_cast<unsigned char>(character[0]) & first_mask[character.size()];
  for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3f);
  std::string sequence = "\\u";
  for (const unsigned shift : {12, 8, 4, 0}) sequence += "0123456789abcdef"[code >> shift & 15];
  return sequence;
}

}  // namespace

void JsonWriter::begin_object(std::string_view key) { open(key, '{'); }
void JsonWriter::end_object() { close('}'); }
void JsonWriter::begin_array(std::string_view key) { open(key, '['); }
void JsonWriter::end_array() { close(']'); }

void JsonWriter::open(std::string_view key, char bracket) {
  assert(!levels_.empty() || key.empty());
  if (!levels_.empty()) separate(key, true);
  text_ += bracket;
  levels_.push_back({.array = bracket == '['});
}

void JsonWriter::close(char bracket) {
  assert(!levels_.empty() && levels_.back().array == (bracket == ']'));
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty && !(level.array && level.plain)) break_line();
  text_ += bracket;
}

void JsonWriter::separate(std::string_view key, bool nests) {
  assert(!levels_.empty() && levels_.back().array == key.empty());
  if (text_.size() >= piece_size && sink_) {
    sink_(text_);
    text_.clear();
  }
  Level& level = levels_.back();
  if (!level.empty) text_ += ',';
  if (nests) level.plain = false;
  if (!level.array || !level.plain)
    break_line();
  else if (!level.empty)
    text_ += ' ';
  level.empty = false;
  if (level.array) return;
  append(key);
  text_ += ": ";
}

void JsonWriter::break_line() {
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

/// Bytes that are not UTF-8, as a path may have, become U+FFFD: JSON cannot represent them.
void JsonWriter::append(std::string_view text) {
  text_ += '"';
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = std::max<std::size_t>(1, text::utf8_length(text));
    const std::string escaped = escape(text.substr(0, length));
    if (text::utf8_length(text) == 0)
      text_ += text::replacement_character;
    else
      text_ += escaped.empty() ? text.substr(0, length) : escaped;
  }
  text_ += '"';
}

void JsonWriter::append(double number) {
  if (!std::isfinite(number)) return append(std::nullopt);
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  assert(error == std::errc());
  text_.append(digits.data(), end);
}

std::string JsonWriter::take() {
  assert(levels_.empty());
  text_ += '\n';
  return std::exchange(text_, {});
}

}  // namespace cmt::output
