// Checks which word is suggested for a mistyped one.

#include "toolkit/command/suggest.h"

#include <doctest/doctest.h>

using cmt::command::closest;
using cmt::command::did_you_mean;

namespace {

const std::vector<std::string> known_words{"summary", "strict", "json", "jobs", "by", "top", "diff", "debug-dir"};

}  // namespace

TEST_CASE("suggest: one change of a letter for each three leads to the word") {
  CHECK(closest("sumary", known_words) == "summary");
  CHECK(closest("summray", known_words) == "summary");
  CHECK(closest("sumry", known_words).empty());
  CHECK(closest("jsno", known_words) == "json");
  CHECK(closest("yb", known_words) == "by");
  CHECK(closest("nonsense", known_words).empty());
}

TEST_CASE("suggest: the begin of one word leads to it, of several to none") {
  CHECK(closest("sum", known_words) == "summary");
  CHECK(closest("debug", known_words) == "debug-dir");
  CHECK(closest("j", known_words).empty());
  CHECK(closest("s", known_words).empty());
}

TEST_CASE("suggest: a word of other letters, an empty and a long one lead to none") {
  CHECK(closest("x", {"y"}).empty());
  CHECK(closest("", known_words).empty());
  CHECK(closest(std::string(100000, 'x'), known_words).empty());
}

TEST_CASE("suggest: a message has the word as it is typed") {
  CHECK(did_you_mean("sumary", known_words, "--") == "; did you mean '--summary'?");
  CHECK(did_you_mean("nonsense", known_words).empty());
}
