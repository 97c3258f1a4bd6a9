// Checks the JSON, CSV and lists of fields that follow from descriptions of structs.

#include "toolkit/output/fields.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tests/house/field_list.h"

namespace {

struct Inner {
  std::uint64_t blocks = 0;
};

template <class Visitor, cmt::output::DescribedAs<Inner> I>
void describe(Visitor& field, I& inner) {
  field("blocks", inner.blocks, "how many");
}

struct Row {
  std::string name;
  std::uint64_t time_ns = static_cast<std::uint64_t>(-1);
  std::optional<std::uint64_t> usable_bytes;
  double ratio = 0;
  bool whole = true;
};

template <class Visitor, cmt::output::DescribedAs<Row> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "of the row");
  field("time_ns", cmt::output::nullable(row.time_ns), "since the start");
  field("usable_bytes", row.usable_bytes, "of all");
  field("ratio", row.ratio, "to the first");
  field("whole", row.whole, "whether it is");
  field("twice_bytes", row.usable_bytes ? 2 * *row.usable_bytes : 0, "computed");
}

struct Report {
  std::vector<Row> rows;
  std::optional<Inner> inner;
  std::vector<std::uint64_t> samples;
};

template <class Visitor, cmt::output::DescribedAs<Report> R>
void describe(Visitor& field, R& report) {
  field("rows", report.rows, "all");
  field("inner", report.inner, "within");
  field("samples", report.samples, "plain");
}

/// Its key was "failed" in an older version.
struct Calls {
  std::uint64_t refused = 0;
};

template <class Visitor, cmt::output::DescribedAs<Calls> C>
void describe(Visitor& field, C& calls) {
  field("refused_calls", cmt::output::renamed(calls.refused, "failed"), "that returned NULL");
}

/// Classes of two numbers each: 0-1, 2-3, …
struct Pairs {
  static constexpr std::size_t count = 3;
  static std::uint64_t low(std::size_t i) { return 2 * i; }
};

struct Item {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  bool in_use() const { return blocks != 0; }
  bool operator==(const Item&) const = default;
};

template <class Visitor, cmt::output::DescribedAs<Item> I>
void describe(Visitor& field, I& item) {
  field("bytes", item.bytes, "in all");
  field("blocks", item.blocks, "how many");
}

struct Wrapped {
  std::optional<Inner> inner;
  std::vector<Item> items;
  std::array<Item, Pairs::count> by_pair{};
  std::array<std::uint64_t, 2> by_color{};
};

template <class Visitor, cmt::output::DescribedAs<Wrapped> W>
void describe(Visitor& field, W& wrapped) {
  const auto color = [](std::size_t i) { return std::string_view(i == 0 ? "red" : "green"); };
  field("inner", cmt::output::omit_if_empty(wrapped.inner), "where there is one");
  field("tuples", cmt::output::as_tuples(wrapped.items), "[bytes, blocks]");
  field("used", cmt::output::in_use_only(wrapped.items), "of the items");
  field("by_pair", cmt::output::by_class<Pairs>(wrapped.by_pair), "[least, bytes, blocks]");
  field("by_color", cmt::output::by_name(wrapped.by_color, color), "how many");
}

/// A reader: assigns what can be assigned.
struct Doubling {
  void operator()(std::string_view, std::uint64_t& value, std::string_view) { value *= 2; }
  template <class T>
  void operator()(std::string_view, T&&, std::string_view) {}
};

}  // namespace

TEST_CASE("fields: a described struct is written as JSON, unknown values as null") {
  Report report{{{"a", 5, 8, 0.5, false}, {"b", static_cast<std::uint64_t>(-1), {}, 1, true}}, Inner{3}, {1, 2}};
  cmt::output::JsonWriter json;
  cmt::output::JsonFields{json}.element(report);
  const std::string text = json.take();
  CHECK(text.find("\"time_ns\": 5") != text.npos);
  CHECK(text.find("\"time_ns\": null") != text.npos);
  CHECK(text.find("\"usable_bytes\": null") != text.npos);
  CHECK(text.find("\"blocks\": 3") != text.npos);
  CHECK(text.find("[1, 2]") != text.npos);
}

TEST_CASE("fields: CSV has a title for each field and an empty cell where a value is not known") {
  CHECK(cmt::output::csv_titles<Row>() == "name,time_ns,usable_bytes,ratio,whole,twice_bytes\n");
  CHECK(cmt::output::csv_row(Row{"a,\"b\"", 5, 8, 0.25, false}) == "\"a,\"\"b\"\"\",5,8,0.25,false,16\n");
  const Row unknown_row{.name = "c", .usable_bytes = {}, .ratio = std::numeric_limits<double>::quiet_NaN()};
  CHECK(cmt::output::csv_row(unknown_row) == "c,,,,true,0\n");
}

TEST_CASE("fields: JSON and the list have a renamed field under both keys, CSV under the old one") {
  CHECK(cmt::output::json_text(Calls{3}) == "{\n  \"refused_calls\": 3,\n  \"failed\": 3\n}\n");
  CHECK(cmt::output::csv_titles<Calls>() == "failed\n");
  CHECK(cmt::output::csv_row(Calls{3}) == "3\n");
  const auto list = cmt::output::list_fields<Calls>();
  CHECK(list.size() == 2);
  CHECK(list.back().key == "failed");
  CHECK(list.back().doc == "the same, until 0.3: refused_calls");
}

TEST_CASE("fields: the list names every field with those that it is within") {
  const auto list = cmt::output::list_fields<Report>();
  REQUIRE(list.size() == 10);
  CHECK(list[1].key == "rows[].name");
  CHECK(list[1].type == "text");
  CHECK(list[2].may_be_null);
  CHECK(list[4].key == "rows[].ratio");
  CHECK(list[4].may_be_null);  // NaN
  CHECK(list[7].key == "inner");
  CHECK(list[7].type == "object");
  CHECK(list[8].key == "inner.blocks");
  CHECK(list[9].type == "numbers");
}

TEST_CASE("fields: a wrapper chooses a field's form in JSON") {
  Wrapped wrapped{.inner = {}, .items = {{5, 1}, {6, 0}}, .by_pair = {{{0, 0}, {7, 2}, {0, 0}}}, .by_color = {0, 3}};
  cmt::output::JsonWriter json;
  cmt::output::JsonFields{json}.element(wrapped);
  std::string text = json.take();
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  CHECK(text ==
        R"({"tuples":[[5,1],[6,0]],"used":[{"bytes":5,"blocks":1}],"by_pair":[[2,7,2]],"by_color":{"green":3}})");
}

TEST_CASE("fields: the list describes wrappers") {
  const auto list = cmt::output::list_fields<Wrapped>();
  REQUIRE(list.size() == 8);
  CHECK(list[0].type == "object");
  CHECK(list[0].may_be_absent);
  CHECK(list[2].type == "tuples");
  CHECK(list[3].type == "objects");
  CHECK(list[5].key == "used[].blocks");
  CHECK(list[6].type == "tuples");
  CHECK(list[7].type == "object");
}

TEST_CASE("fields: a visitor can assign the members of an object that is not const") {
  Inner inner{4};
  Doubling twice;
  describe(twice, inner);
  CHECK(inner.blocks == 8);
}
