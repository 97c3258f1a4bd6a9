// Checks the names of Python's packages, files and functions, and the pages of stacks that are shown as one.
#include "analysis/stacks/function_names/python_frames.h"

#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "analysis/held_pages/page_use.h"
#include "analysis/stacks/function_names/short_name.h"
#include "analysis/stacks/native_frames.h"

namespace cmt::analysis {
namespace {

struct File {
  std::string_view path, package, shown;
  PythonOrigin origin;
};

constexpr std::array<File, 11> files{{
    {"/usr/lib/python3/dist-packages/numpy/core/numeric.py", "numpy", "numpy/core/numeric.py", PythonOrigin::installed},
    {"/opt/venv/lib/python3.11/site-packages/six.py", "six", "six.py", PythonOrigin::installed},
    {"/usr/lib/python3.11/json/decoder.py", "python stdlib: json", "json/decoder.py", PythonOrigin::standard},
    {"/usr/lib/python3.11/lib-dynload/_json.cpython-311-x.so", "python stdlib: json",
     "lib-dynload/_json.cpython-311-x.so", PythonOrigin::standard},
    {"<frozen importlib._bootstrap>", "python stdlib: importlib", "<frozen importlib._bootstrap>",
     PythonOrigin::standard},
    {"/srv/shop/db/rows.py", "/srv/shop/db", "db/rows.py", PythonOrigin::own},
    {"/usr/lib64/python3.13/abc.py", "python stdlib: abc", "abc.py", PythonOrigin::standard},
    {"/srv/python3.11/app.py", "/srv/python3.11", "python3.11/app.py", PythonOrigin::own},
    {"/app.py", "/", "/app.py", PythonOrigin::own},
    {"app.py", "(program)", "app.py", PythonOrigin::own},
    {"<string>", "(program)", "<string>", PythonOrigin::own},
}};

TEST_CASE("python: a file has the package that it was installed with") {
  for (const File& file : files) {
    CAPTURE(file.path);
    CHECK(python_package(file.path).name == file.package);
    CHECK(python_package(file.path).origin == file.origin);
    CHECK(python_file(file.path) == file.shown);
  }
}

TEST_CASE("python: a function has its file, and keeps its name in reports") {
  const FrameName name{.function = "main.<locals>.<lambda>", .file = "/srv/shop/app.py", .line = 41};
  CHECK(python_function(name, false) == "main.<locals>.<lambda> (shop/app.py)");
  CHECK(python_function(name, true) == "main.<locals>.<lambda> (shop/app.py:41)");
  CHECK(python_function({.function = "f", .file = {}}, true) == "f");
  for (const std::string_view text : {"main.<locals>.<lambda> (shop/app.py:41)", "f (<string>)"})
    CHECK(short_name(text) == text);
  CHECK(!is_python_function("decltype (x) f()"));
  CHECK(short_name("void f(int)") == "f");
}

TEST_CASE("python: a page that several recorded stacks share is of the one shown stack alone") {
  PageUses uses{.entries = {{.key = 1, .use = {.blocks = 1}},
                            {.key = 2, .use = {.blocks = 2, .sole_bytes = 4096}},
                            {.key = 3, .use = {.blocks = 4}}},
                .page_size = 4096,
                .shared_pages = {2, 1, 2, 3, 1, 2, 3}};
  ShownStacks shown;
  shown.nodes = {0, 1, 1, 2};
  uses = shown_uses(std::move(uses), shown);
  REQUIRE(uses.entries.size() == 2);
  CHECK(uses.entries[0].key == 1);
  CHECK(uses.entries[0].use.blocks == 3);
  CHECK(uses.entries[0].use.sole_bytes == 8192);
  CHECK(uses.entries[1].use.sole_bytes == 0);
  CHECK(uses.shared_pages == std::vector<KeyId>{2, 1, 2});
}

}  // namespace
}  // namespace cmt::analysis
