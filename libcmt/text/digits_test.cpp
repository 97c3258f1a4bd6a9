// Numbers of all lengths: put_decimal() and put_hex() write the same digits as std::to_chars().

#include "libcmt/text/digits.h"

#include <doctest/doctest.h>

#include <charconv>
#include <random>
#include <string>

namespace {

template <class Number>
std::string to_chars_digits(Number number, int base) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr};
}

template <class Put, class Number>
std::string digits_of(Put put, Number number) {
  char digits[cmt::text::number_room];
  return {digits, put(digits, number)};
}

void check_digits(std::uint64_t number) {
  using namespace cmt::text;
  CHECK(digits_of(put_decimal, number) == to_chars_digits(number, 10));
  CHECK(digits_of(put_hex, number) == to_chars_digits(number, 16));
  const auto either_sign = static_cast<std::int64_t>(number);
  CHECK(digits_of(put_signed_decimal, either_sign) == to_chars_digits(either_sign, 10));
}

}  // namespace

TEST_CASE("digits: numbers of every length are written as std::to_chars writes them") {
  std::mt19937_64 random(1);
  check_digits(0);
  for (std::uint64_t power = 1, i = 0; i < 20; ++i, power *= 10) {
    for (const std::uint64_t number : {power - 1, power, power + 1, power * 9}) check_digits(number);
  }
  for (int bits = 1; bits <= 64; ++bits) {
    check_digits(~std::uint64_t{0} >> (64 - bits));
    for (int i = 0; i < 20; ++i) check_digits(random() >> (64 - bits));
  }
}

TEST_CASE("digits: every number of up to four digits, at either end of a word") {
  for (std::uint64_t number = 0; number < 10000; ++number) {
    if (digits_of(cmt::text::put_decimal, number) != to_chars_digits(number, 10)) FAIL(number);
    const std::uint64_t high = number * 10000 + 9999 - number;
    if (digits_of(cmt::text::put_decimal, high) != to_chars_digits(high, 10)) FAIL(high);
  }
}
