#include "analysis/groups/rows.h"

#include <doctest/doctest.h>

using namespace cmt::analysis;

namespace {

struct Row {
  std::string name;
  std::vector<Row> callers{};
};

}  // namespace

TEST_CASE("names in tables: functions have short ones, unless two would be the same") {
  const std::string grow = "grow(std::vector<double, std::allocator<double> >&)",
                    load = "load(std::vector<int, std::allocator<int> >&)",
                    other_load = "load(std::vector<char, std::allocator<char> >&)";
  const std::vector<Row> rows{{grow, {{load}, {"main"}}}, {other_load}, {"copy_of_all(int)"}, {grow}};
  const TableNames names(By::function, rows);
  CHECK(names.text(grow) == "grow");
  CHECK((names.text(load) == load && names.text(other_load) == other_load));
  CHECK((names.text("main") == "main" && names.text("copy_of_all(int)") == "copy_of_all"));
  CHECK(names.text("elsewhere(std::vector<int, std::allocator<int> >&)") ==
        "elsewhere(std::vector<int, std::allocator<int> >&)");
  CHECK(names.text("render_the_whole_page /srv/app.js:6:16") == "render_the_whole_page /srv/app.js:6:16");
  const std::vector<Row> libraries{{"grow(std::vector<double>&) [liba.so]"}};
  CHECK(TableNames(By::function, libraries).text(libraries[0].name) == "grow [liba.so]");
  CHECK(TableNames(By::caller, rows).text(grow) == "grow");
  CHECK(TableNames(By::line, rows).text(grow) == grow);
}

TEST_CASE("names in tables: a name that is short by itself keeps another one whole") {
  const std::vector<Row> rows{{"grow"}, {"grow(std::vector<double, std::allocator<double> >&)"}};
  CHECK(TableNames(By::function, rows).text(rows[1].name) == rows[1].name);
}
