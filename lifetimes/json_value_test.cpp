#include "lifetimes/json_value.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "cmt/error.h"

using cmt::lifetimes::JsonValue;

TEST_CASE("json: what our summaries are made of is read") {
  const auto value =
      JsonValue::parse(R"( {"a": [1, 18446744073709551615], "b": "x\n\u0041\"", "c": null, "d": true, "e": {}} )", "f");
  CHECK(value.at("a").array()[1].number() == ~std::uint64_t{0});
  CHECK(value.at("b").string() == "x\nA\"");
  CHECK(value.at("c").is_null());
  CHECK(value.at("d").truth());
  CHECK(value.at("e").object().empty());
}

TEST_CASE("json: what is wrong is told with its offset") {
  CHECK_THROWS_WITH_AS(JsonValue::parse(R"({"a" 1})", "f"), "f: offset 0x5: expected ':'", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse("[1", "f"), "f: offset 0x2: expected ']'", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse("[1] 2", "f"), "f: offset 0x4: more behind the end", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse("-1", "f"), "f: offset 0x0: expected a value", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse("\"a", "f"), "f: offset 0x2: a string without an end", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse(R"("\x")", "f"), "f: offset 0x3: an unknown escape", cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse(R"("\u00e9")", "f"), "f: offset 0x3: an escape that is not ASCII",
                       cmt::FormatError);
  CHECK_THROWS_WITH_AS(JsonValue::parse(std::string(20, '['), "f"), "f: offset 0x11: nested too deeply",
                       cmt::FormatError);
}

TEST_CASE("json: a text cut at any place is an error and not a crash") {
  const std::string text = R"({"a": [1, "b\n", null, true], "c": {"d": false}})";
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK_THROWS_AS(JsonValue::parse(text.substr(0, length), "f"), cmt::FormatError);
  }
}

TEST_CASE("json: a value that is something else than expected is an error") {
  const auto value = JsonValue::parse(R"({"a": 1})", "f");
  CHECK_THROWS_WITH_AS(value.at("b"), "no \"b\"", std::invalid_argument);
  CHECK_THROWS_WITH_AS(value.at("a").string(), "expected a string", std::invalid_argument);
}
