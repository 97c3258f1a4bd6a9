#include "analysis/stacks/labels.h"

#include <doctest/doctest.h>

using cmt::analysis::NamePattern;

TEST_CASE("names of functions: an expression is for the own name, without result and arguments") {
  NamePattern library("std::");
  CHECK(
      library.matches_function("double& std::vector<double, std::allocator<double> >::emplace_back<double>(double&&)"));
  CHECK(library.matches_function("std::string::append(char const*)"));
  CHECK_FALSE(library.matches_function("grow(std::vector<double, std::allocator<double> >&)"));
  CHECK_FALSE(library.matches_function("std::string name_of<std::string>(int)"));
  CHECK_FALSE(library.matches_function(""));
  NamePattern exact("^my_(malloc|realloc)$");
  CHECK((exact.matches_function("my_malloc") && exact.matches_function("my_realloc(void*, unsigned long)")));
  CHECK_FALSE(exact.matches_function("my_mallocs"));
}

TEST_CASE("names of functions: an expression with a template or an argument is for the whole name") {
  CHECK(NamePattern("vector<double").matches_function("grow(std::vector<double>&)"));
  CHECK(NamePattern("grow\\(std").matches_function("grow(std::vector<double>&)"));
  CHECK_FALSE(NamePattern("grow(std)").matches_function("grow(std::vector<double>&)"));
}

TEST_CASE("names of functions: each of several expressions is for own names, or for whole ones") {
  NamePattern several("std::\nother<");
  CHECK(several.matches_function("std::string::append(char const*)"));
  CHECK(several.matches_function("void other<int>()"));
  CHECK_FALSE(several.matches_function("grow(std::vector<double>&)"));
  CHECK(NamePattern("make[(]").matches_function("make(int)"));
}

TEST_CASE("names of functions: words beside the own name stay, and types of conversions do not") {
  CHECK(NamePattern("clone .*cold").matches_function("load(int) [clone .cold]"));
  CHECK(NamePattern("^non-virtual thunk").matches_function("non-virtual thunk to Shape::draw(int)"));
  CHECK_FALSE(NamePattern("std::").matches_function("C::operator std::string() const"));
  CHECK(NamePattern("^C::operator$").matches_function("C::operator std::string() const"));
  CHECK(NamePattern("operator new").matches_function("operator new(unsigned long)"));
}

TEST_CASE("names of functions: a function of a script has its file") {
  CHECK(NamePattern("/app/rows").matches_function("load /app/rows.js:12:3"));
  CHECK(NamePattern("/app/rows").matches_function("py::load:/app/rows.py"));
}

TEST_CASE("names of functions: a path is compared as it is") {
  NamePattern path("^/src/a[(]b[)]/");
  CHECK(path.matches_place("/src/a(b)/rows.cpp:41"));
  CHECK_FALSE(path.matches_place(""));
  CHECK(NamePattern("").is_empty());
  CHECK_FALSE(NamePattern("").matches_place("/src"));
}
