// Checks alignment and shortening of tables, also of names beyond ASCII.

#include "toolkit/output/table.h"

#include <doctest/doctest.h>

#include "toolkit/output/numbers.h"

using namespace cmt::output;

namespace {

struct ColumnsRow {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t change = 0;
  std::uint64_t pages = static_cast<std::uint64_t>(-1);
};

template <class Visitor, DescribedAs<ColumnsRow> R>
void describe(Visitor& field, R& row) {
  field("name", row.name, "");
  field("bytes", row.bytes, "");
  field("change", row.change, "");
  field("pages", nullable(row.pages), "");
  field("share", 0.5, "");
}

std::string change_cell(std::int64_t change) { return std::to_string(change); }
std::string share_cell(double share) { return fixed(share, 1); }
std::string name_cell(std::string_view name) { return "<" + std::string(name) + ">"; }

}  // namespace

TEST_CASE("table: columns are aligned and lines end without blanks") {
  Table table({"name", "bytes", "note"}, {0, 2});
  table.add({"a", "1", ""});
  table.add({"longer", "1,024", "x"});
  CHECK(table.text() == "name    bytes  note\na           1\nlonger  1,024  x\n");
}

TEST_CASE("table: a letter beyond ASCII is one column wide") {
  Table table({"a", "b"}, {0, 1});
  table.add({"\xc3\xbc", "1"});
  table.add({"uu", "2"});
  CHECK(table.text() == "a   b\n\xc3\xbc   1\nuu  2\n");
}

TEST_CASE("table: without rows there are the titles") { CHECK(Table({"a", "b"}, {0, 1}).text() == "a  b\n"); }

TEST_CASE("numbers: commas separate thousands") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1234567) == "1,234,567");
}

TEST_CASE("numbers: an address is lower case, without 0x and without zeros before it") {
  CHECK(hex(0) == "0");
  CHECK(hex(0x7ffd30a51000) == "7ffd30a51000");
  CHECK(hex(~std::uint64_t{0}) == "ffffffffffffffff");
}

TEST_CASE("numbers: bytes are written in units of 1,024 with three digits") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(12698) == "12.4 KiB");
  CHECK(bytes_text(std::uint64_t(3) << 30) == "3.00 GiB");
}

TEST_CASE("numbers: times are written with three digits") {
  CHECK(time_text(0) == "0 ns");
  CHECK(time_text(999) == "999 ns");
  CHECK(time_text(1000) == "1.00 us");
  CHECK(time_text(12345678) == "12.3 ms");
  CHECK(time_text(4.2e12) == "4200 s");
}

TEST_CASE("numbers: a share of nothing is a dash, and a class of one number is that number") {
  CHECK(percent_text(1, 8) == "12.5 %");
  CHECK(percent_text(0, 0) == "-");
  CHECK(range_text(8, 9) == "8-9");
  CHECK(range_text(7, 7) == "7");
}

TEST_CASE("table: a long text is shortened in its middle, and keeps its end") {
  CHECK(shortened("/usr/lib/x86_64-linux-gnu/libc.so.6", 24) == "/usr/li...-gnu/libc.so.6");
  CHECK(shortened("short", 5) == "short");
  CHECK(shortened("äöüäöüäöü", 6) == "ä...öü");
  CHECK(shortened("longer", 2) == "..");
  CHECK(shortened("make -j8 all install", 11, Telling::begin) == "make -j8...");
}

TEST_CASE("table: in a narrow terminal the last numbers are left out, and the last column is shortened") {
  Table table({"resident", "shared", "swapped", "file"}, {3});
  table.add({"1,234 KiB", "12 KiB", "0 KiB", "/usr/lib/x86_64-linux-gnu/libc.so.6"});
  CHECK(table.text(60) ==
        " resident  shared  swapped  file\n"
        "1,234 KiB  12 KiB    0 KiB  /usr/lib/...-linux-gnu/libc.so.6\n");
  CHECK(table.text(44) ==
        " resident  shared  file\n"
        "1,234 KiB  12 KiB  /usr/li...x-gnu/libc.so.6\n");
  CHECK(table.text(20) ==
        " resident  shared  file\n"
        "1,234 KiB  12 KiB  /usr/li...-gnu/libc.so.6\n");
  CHECK(table.text(200) == table.text());
}

TEST_CASE("table: columns have fields of a description, each in its form") {
  Columns<ColumnsRow> columns;
  columns.add("size", "bytes", bytes_text);
  columns.add("changed by", "change", change_cell);
  columns.add("share", "share", share_cell);
  columns.add("called", "name", name_cell);
  CHECK(columns.cells({"a", 2048, -3, 1}) == std::vector<std::string>{"2.00 KiB", "-3", "0.5", "<a>"});
}

TEST_CASE("table: a column has a text of its own for what is not known") {
  Columns<ColumnsRow> columns;
  columns.add("pages", "pages", with_commas);
  columns.add("again", "pages", with_commas, "none");
  CHECK(columns.cells({"a", 0, 0, 1000}) == std::vector<std::string>{"1,000", "1,000"});
  CHECK(columns.cells({"a", 0, 0}) == std::vector<std::string>{"-", "none"});
}

TEST_CASE("table: columns of fields, numbers and texts are in the order in which they were added") {
  Columns<ColumnsRow> columns;
  columns.add("bytes", "bytes", with_commas);
  columns.add_computed("half", [](const ColumnsRow& row) { return std::to_string(row.bytes / 2); });
  columns.add_text("name", [](const ColumnsRow& row) { return row.name; });
  const std::vector<ColumnsRow> rows{{"a", 1000}, {"longer", 8}};
  CHECK(columns.table(rows).text() == "bytes  half  name\n1,000   500  a\n    8     4  longer\n");
  CHECK(columns.table().text() == "bytes  half  name\n");
}

TEST_CASE("table: a form may carry a setting") {
  const std::string unit = " ns";
  const std::function timed = [unit](std::uint64_t number) { return std::to_string(number) + unit; };
  Columns<ColumnsRow> columns;
  columns.add("time", "bytes", timed);
  CHECK(columns.cells({"a", 5}) == std::vector<std::string>{"5 ns"});
}

TEST_CASE("table: a name in the first column is shortened, and chosen columns are left out before others") {
  Table table({"function", "at peak", "blocks", "allocated"});
  table.leave_out_first({"blocks"});
  table.add({"std::vector<int>::push_back(int const&)", "1 B", "22,222", "333 B"});
  CHECK(table.text(44) ==
        "function                  at peak  allocated\nstd::ve...ck(int const&)      1 B      333 B\n");
  CHECK(table.text(52) ==
        "function                  at peak  blocks  allocated\nstd::ve...ck(int const&)      1 B  22,222      333 B\n");
}

TEST_CASE("table: columns of zeros are left out where that is wanted, and those of texts never") {
  Table table({"name", "bytes", "share", "pages", "note"}, {0, 4});
  table.add({"a", "0 B", "-", "10", ""});
  table.add({"b", "0 B", "0.0 %", "0", ""});
  const std::string whole = table.text();
  CHECK(whole.starts_with("name  bytes  share  pages  note\n"));
  table.leave_out_zeros();
  CHECK(table.text() == "name  pages  note\na        10\nb         0\n");
  Table none({"name", "bytes"});
  none.leave_out_zeros();
  CHECK(none.text() == "name  bytes\n");
}
