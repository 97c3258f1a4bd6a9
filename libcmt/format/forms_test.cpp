// Checks that the prefix code of the forms is the cheapest one, and that bad tables of forms are rejected.

#include "libcmt/format/forms.h"

#include <doctest/doctest.h>

#include <random>

using namespace cmt;
using namespace cmt::format;

namespace {

std::string error_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) put_varint(bytes, static_cast<std::uint64_t>(value));
  try {
    Cursor cursor(bytes);
    FormTable::take(cursor, false);
    return "";
  } catch (const WireError& error) {
    return error.what();
  }
}

std::string put(const Form& form) {
  std::string bytes;
  form.put(bytes);
  return bytes;
}

std::vector<BitHistogram> random_histograms(std::mt19937& random, std::size_t forms) {
  std::vector<BitHistogram> all(forms, BitHistogram{});
  for (BitHistogram& each : all) {
    for (std::uint32_t& count : each) count = random() % 4 == 0 ? random() % 10000 : 0;
  }
  return all;
}

}  // namespace

TEST_CASE("forms: the cheapest code fits by Kraft's inequality, for any number of forms") {
  std::mt19937 random(1);
  for (std::size_t forms = 1; forms <= forms_limit; forms += forms < 10 ? 1 : 13) {
    unsigned units = 0;
    for (const std::uint8_t length : cheapest_code(random_histograms(random, forms))) {
      REQUIRE(length >= 1);
      REQUIRE(length <= code_bits_limit);
      units += forms_limit >> length;
    }
    CHECK(units <= forms_limit);
  }
}

TEST_CASE("forms: no code is the start of another, and a full set of codes leaves none over") {
  for (const std::vector<std::uint8_t>& lengths :
       {std::vector<std::uint8_t>{1, 2, 2}, {2, 2, 1}, {7, 7, 6, 5, 4, 3, 2, 1}, std::vector<std::uint8_t>(128, 7)}) {
    const auto codes = canonical_codes(lengths);
    for (unsigned low = 0; low < forms_limit; ++low) {
      int fitting = 0;
      for (std::size_t i = 0; i < codes.size(); ++i) fitting += (low & ((1u << lengths[i]) - 1)) == codes[i];
      REQUIRE(fitting == 1);
    }
  }
}

TEST_CASE("forms: every form that is allowed comes back from the wire, all others are refused") {
  int allowed = 0;
  for (unsigned value = 0; value < 512; ++value) {
    if (value % 32 >= Form::described) continue;
    std::string bytes;
    put_varint(bytes, value);
    try {
      Cursor cursor(bytes);
      const Form form = Form::take(cursor);
      CHECK(put(form) == bytes);
      CHECK(cursor.at_end());
      ++allowed;
    } catch (const WireError& error) {
      CHECK(error.what() == "unknown form " + std::to_string(value));
    }
  }
  CHECK(allowed == 132);
}

TEST_CASE("forms: a kind from 27 on is described, and the description says which forms it may have") {
  int allowed = 0;
  for (unsigned value = 0; value < 2048; ++value) {
    const unsigned number = value % 32 + (value >> 9) * 32;
    if (number < Form::described) continue;
    for (const unsigned traits : {0, 1, 2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 65, 66, 70, 251, 255}) {
      std::string bytes;
      for (const unsigned each : {value, traits, traits % 3}) put_varint(bytes, each);
      const auto has = [&](unsigned trait) { return (traits & trait) != 0; };
      const bool fits =
          number < kind_limit && !(has(cmt_releases) && has(cmt_names)) &&
          (!is_known(static_cast<Kind>(number)) || traits == cmt::traits(static_cast<Kind>(number)).bits()) &&
          (number != Form::next_run || traits == cmt_names) && ((value & 32) == 0 || has(cmt_releases | cmt_names)) &&
          ((value & 64) == 0 || has(cmt_allocates)) && ((value & 256) == 0 || has(cmt_may_align)) &&
          ((value & 128) == 0 || has(~static_cast<unsigned>(cmt_allocates | cmt_may_align)) || traits % 3 != 0 ||
           (value & 256) != 0);
      try {
        Cursor cursor(bytes);
        const Form form = Form::take(cursor);
        if (!fits || put(form) != bytes || !cursor.at_end()) FAIL(value, " with traits ", traits);
        ++allowed;
      } catch (const WireError& error) {
        if (fits || error.what() != "unknown form " + std::to_string(value)) FAIL(value, " with traits ", traits);
      }
    }
  }
  CHECK(allowed > 500);
}

TEST_CASE("forms: a description that is cut off or above its limits is reported") {
  CHECK(error_of({1, 520, 255 - cmt_names, 16, 1}) == "");
  CHECK(error_of({1, 520, 256, 0, 1}) == "a kind's traits 256 is above its limit");
  CHECK(error_of({1, 520, 0, 17, 1}) == "a kind's number of further operands 17 is above its limit");
  CHECK(error_of({1, 520}) == "a number is cut off");
  CHECK(error_of({1, 520, 255}) == "a number is cut off");
  CHECK(error_of({1, 520, 255 - cmt_names, 16}) == "a number is cut off");
  CHECK(error_of({1, 1024, 0, 0, 1}) == "unknown form 1024");
}

TEST_CASE("forms: a table that is wrong is reported") {
  CHECK(error_of({1, 0, 1}) == "");
  CHECK(error_of({129}) == "the number of forms 129 is above its limit");
  CHECK(error_of({1, 27, 1, 0}) == "unknown form 27");
  CHECK(error_of({1, 0, 0}) == "a code of no bits");
  CHECK(error_of({1, 0, 8}) == "a code's length 8 is above its limit");
  CHECK(error_of({3, 0, 1, 1, 1, 2, 7}) == "more codes than there is room for");
  CHECK(error_of({2, 0, 1}) == "a number is cut off");
}
