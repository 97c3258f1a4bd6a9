/// The parts of a line that many foreign logs have in common: numbers, addresses, calls with arguments, process ids.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

#include "cmt/event.h"

namespace cmt::logs {

// A function take_…() removes from `line` the part that it returns.

/// Times from here on (March 1973) count from 1970; smaller ones count from the start of the program.
constexpr std::uint64_t wall_clock_ns = 100'000'000'000'000'000;

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes a number of this base, without sign or prefix.
inline bool take_number(std::string_view& text, std::uint64_t& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

/// Whether all of a word is a number.
inline bool whole_number(std::string_view word, std::uint64_t& value, int base = 10) {
  return take_number(word, value, base) && word.empty();
}

/// Whether all of a word is an address: hexadecimal, with or without 0x, or one of the ways to write NULL.
inline bool whole_address(std::string_view word, std::uint64_t& value) {
  if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
  if (whole_number(word, value, 16)) return true;
  value = 0;
  return word == "(nil)" || word == "nil" || word == "(null)" || word == "NULL";
}

/// Whether all of a word is a number as C writes it: decimal, or hexadecimal with 0x. A negative one is the size_t that
/// the program passed.
inline bool whole_c_number(std::string_view word, std::uint64_t& value) {
  if (word.starts_with('-') && whole_number(word.substr(1), value)) return value = 0 - value, true;
  if (word.starts_with("0x")) return whole_number(word.substr(2), value, 16);
  if (whole_number(word, value)) return true;
  value = 0;
  return word == "(nil)" || word == "nil";
}

/// Takes the next word, up to a blank.
inline std::string_view take_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  std::size_t length = 0;
  while (length < line.size() && !is_blank(line[length])) ++length;
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

/// Takes the next word, which is a hexadecimal number without 0x.
inline bool take_hex(std::string_view& line, std::uint64_t& value) { return whole_number(take_word(line), value, 16); }

/// Takes the last word.
inline std::string_view take_last_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  std::size_t length = 0;
  while (length < line.size() && !is_blank(line[line.size() - 1 - length])) ++length;
  const std::string_view word = line.substr(line.size() - length);
  line.remove_suffix(length);
  return word;
}

/// Takes all up to a character, and the character. Returns false and takes nothing if the line does not have it.
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

/// Whether all of a word is seconds with a fraction, as in 1536334807.907404; `ns` becomes that in nanoseconds.
inline bool whole_seconds(std::string_view word, std::uint64_t& ns) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  std::string_view seconds;
  std::uint64_t whole = 0, fraction = 0;
  if (!take_until(word, '.', seconds) || word.empty() || word.size() > 9) return false;
  if (!whole_number(seconds, whole) || !whole_number(word, fraction)) return false;
  if (whole > std::numeric_limits<std::uint64_t>::max() / second_ns - 1) return false;
  for (std::size_t digits = word.size(); digits < 9; ++digits) fraction *= 10;
  ns = whole * second_ns + fraction;
  return true;
}

/// Whether all of a word is a time of day, 14:02:01 or 14:02:01.512; `ns` becomes that in nanoseconds.
inline bool whole_time_of_day(std::string_view word, std::uint64_t& ns) {
  std::string_view hours, minutes;
  std::uint64_t hour = 0, minute = 0, second = 0;
  if (!take_until(word, ':', hours) || !take_until(word, ':', minutes)) return false;
  if (!whole_number(hours, hour) || !whole_number(minutes, minute) || hour > 23 || minute > 59) return false;
  if (!whole_seconds(word, ns)) {
    if (!whole_number(word, second) || second > 60) return false;
    ns = second * 1'000'000'000;
  }
  ns += (hour * 60 + minute) * 60'000'000'000;
  return true;
}

/// A function's name in a log, as in `malloc(10)`, `memalign(al 64, size 128)` or `_ZdlPvm(0x562f, 4, 0)`, with its
/// kind and the meaning of its arguments.
struct CallName {
  std::string_view name;
  cmt::Kind kind;
  /// A letter for each argument: p the block given, s size, c count, a alignment. Further arguments are ignored.
  std::string_view arguments;
};

/// Knows the functions of malloc's family, and operator new and delete by their mangled names and by those with types,
/// as `operator new(unsigned long)`; nullptr for all others.
const CallName* find_call(std::string_view name);

/// The arguments of a call, as numbers.
struct Arguments {
  std::array<std::uint64_t, 6> values{};
  std::size_t count = 0;
  bool is_closed = false;  ///< the closing parenthesis is present
};

/// Takes arguments and the closing parenthesis off a line. The last word of each argument is its value, so `size 128`
/// is 128. Returns false if one of the first six is no number.
bool take_arguments(std::string_view& line, Arguments& arguments);

/// Takes a number off a line for each argument of a call, between blanks or commas. The block given is hexadecimal, the
/// others are decimal. Returns false if one is missing or no number.
bool take_plain_arguments(std::string_view& line, const CallName& call, Arguments& arguments);

/// Makes the event of a call, without its result. Returns false if an argument is missing.
bool event_of(const CallName& call, const Arguments& arguments, cmt::Event& event);

}  // namespace cmt::logs
