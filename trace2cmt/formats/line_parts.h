#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace trace2cmt {

// What the logs' lines are made of.

/// A time of so many ns is one since 1970 (March 1973): no trace ran longer.
constexpr std::uint64_t wall_clock_ns = 100'000'000'000'000'000;

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// All of a word is a number of this base, without sign or prefix.
inline bool whole_number(std::string_view word, std::uint64_t& value, int base = 10) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return error == std::errc() && end == word.data() + word.size();
}

/// All of a word is an address: hexadecimal, with or without 0x, or a way to write NULL.
inline bool whole_address(std::string_view word, std::uint64_t& value) {
  if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
  if (whole_number(word, value, 16)) return true;
  value = 0;
  return word == "(nil)" || word == "nil" || word == "(null)" || word == "NULL";
}

/// All of a word is a number as C writes it: decimal, or hexadecimal with 0x.
inline bool whole_c_number(std::string_view word, std::uint64_t& value) {
  if (word.starts_with("0x")) return whole_number(word.substr(2), value, 16);
  if (whole_number(word, value)) return true;
  value = 0;
  return word == "(nil)" || word == "nil";
}

/// All of a word is seconds with a fraction, as in 1536334807.907404: taken as nanoseconds.
bool whole_seconds(std::string_view word, std::uint64_t& ns);

/// Takes the next word off a line, up to a blank.
inline std::string_view take_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  std::size_t length = 0;
  while (length < line.size() && !is_blank(line[length])) ++length;
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

/// Takes the last word off a line.
inline std::string_view take_last_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  std::size_t length = 0;
  while (length < line.size() && !is_blank(line[line.size() - 1 - length])) ++length;
  const std::string_view word = line.substr(line.size() - length);
  line.remove_suffix(length);
  return word;
}

/// Takes all up to a character, and that. False, and nothing taken, where it does not come.
inline bool take_until(std::string_view& line, char stop, std::string_view& taken) {
  const std::size_t length = line.find(stop);
  if (length == std::string_view::npos) return false;
  taken = line.substr(0, length);
  line.remove_prefix(length + 1);
  return true;
}

inline bool take_prefix(std::string_view& line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return false;
  line.remove_prefix(prefix.size());
  return true;
}

}  // namespace trace2cmt
