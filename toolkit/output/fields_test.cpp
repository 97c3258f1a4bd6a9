#include "toolkit/output/fields.h"

#include <doctest/doctest.h>

#include <limits>

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

/// A reader: assigns what can be assigned.
struct Doubling {
  void operator()(std::string_view, std::uint64_t& value, std::string_view) { value *= 2; }
  template <class T>
  void operator()(std::string_view, T&&, std::string_view) {}
};

}  // namespace

TEST_CASE("fields: a described struct is written as JSON, what is not known as null") {
  Report report{{{"a", 5, 8, 0.5, false}, {"b", static_cast<std::uint64_t>(-1), {}, 1, true}}, Inner{3}, {1, 2}};
  cmt::output::JsonWriter json;
  cmt::output::write_object(json, report);
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
  const Row unknown{.name = "c", .usable_bytes = {}, .ratio = std::numeric_limits<double>::quiet_NaN()};
  CHECK(cmt::output::csv_row(unknown) == "c,,,,true,0\n");
}

TEST_CASE("fields: the list names every field with those that it is within") {
  const auto list = cmt::output::list_fields<Report>();
  REQUIRE(list.size() == 10);
  CHECK(list[1].key == "rows[].name");
  CHECK(list[1].type == "text");
  CHECK(list[2].may_be_null);
  CHECK(list[7].key == "inner");
  CHECK(list[7].type == "object");
  CHECK(list[8].key == "inner.blocks");
  CHECK(list[9].type == "array");
}

TEST_CASE("fields: a visitor can assign the members of an object that is not const") {
  Inner inner{4};
  Doubling twice;
  describe(twice, inner);
  CHECK(inner.blocks == 8);
}
