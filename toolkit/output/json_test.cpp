// Checks layout, escapes and numbers of written JSON.

#include "toolkit/output/json.h"

#include <doctest/doctest.h>

#include <limits>

using cmt::output::JsonWriter;

namespace {

template <class T>
std::string array_of(const T& value) {
  JsonWriter json;
  json.begin_array();
  json.value(value);
  json.end_array();
  return json.take();
}

}  // namespace

TEST_CASE("json: objects are indented, and arrays of plain values stay on a line") {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.replay/1");
  json.begin_array("samples");
  json.value(1);
  json.value(2.5);
  json.end_array();
  json.begin_object("inner");
  json.field("yes", true);
  json.end_object();
  json.end_object();
  CHECK(json.take() ==
        "{\n  \"schema\": \"cmt.replay/1\",\n  \"samples\": [1, 2.5],\n  \"inner\": {\n    \"yes\": true\n  }\n}\n");
}

TEST_CASE("json: an array of objects has a line for each brace") {
  JsonWriter json;
  json.begin_array();
  for (int i = 0; i < 2; ++i) {
    json.begin_object();
    json.field("i", i);
    json.end_object();
  }
  json.end_array();
  CHECK(json.take() == "[\n  {\n    \"i\": 0\n  },\n  {\n    \"i\": 1\n  }\n]\n");
}

TEST_CASE("json: an empty object or array is a pair of brackets") {
  JsonWriter json;
  json.begin_object();
  json.begin_array("none");
  json.end_array();
  json.begin_object("nothing");
  json.end_object();
  json.end_object();
  CHECK(json.take() == "{\n  \"none\": [],\n  \"nothing\": {}\n}\n");
}

TEST_CASE("json: NaN, infinity and missing values are null") {
  CHECK(array_of(std::numeric_limits<double>::quiet_NaN()) == "[null]\n");
  CHECK(array_of(std::numeric_limits<double>::infinity()) == "[null]\n");
  CHECK(array_of(std::optional<double>()) == "[null]\n");
  CHECK(array_of(std::optional<double>(0.5)) == "[0.5]\n");
}

TEST_CASE("json: 64 bits are written whole") {
  CHECK(array_of(std::numeric_limits<std::uint64_t>::max()) == "[18446744073709551615]\n");
}

TEST_CASE("json: quotes, backslashes and control characters are escaped") {
  CHECK(array_of("a\"b\\c\n\t\r\x01\x7f") == "[\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f\"]\n");
}

TEST_CASE("json: UTF-8 stays as it is") {
  CHECK(array_of("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "[\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"]\n");
}

TEST_CASE("json: bytes that are not UTF-8 become the replacement character") {
  CHECK(array_of("a\xff") == "[\"a\xef\xbf\xbd\"]\n");
  CHECK(array_of("\xc3") == "[\"\xef\xbf\xbd\"]\n");
  CHECK(array_of("\xed\xa0\x80") == "[\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]\n");
}

TEST_CASE("json: a text taken in pieces is the same") {
  JsonWriter whole, pieces;
  std::string text;
  for (JsonWriter* json : {&whole, &pieces}) {
    json->begin_array();
    for (int i = 0; i < 3; ++i) {
      json->begin_object();
      if (json == &pieces) text += json->drain();
      json->field("i", i);
      json->end_object();
      if (json == &pieces) text += json->drain();
    }
    json->end_array();
  }
  CHECK(text + pieces.take() == whole.take());
}
