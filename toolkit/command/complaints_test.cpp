// Checks that ten defects are printed and all are counted, or that the first one is thrown.

#include "toolkit/command/complaints.h"

#include <doctest/doctest.h>

#include <vector>

using cmt::command::Complaints;

TEST_CASE("complaints: ten are reported, all are counted") {
  std::vector<std::string> said;
  Complaints complaints(false, [&](const std::string& line) { said.push_back(line); });
  for (int i = 0; i < 12; ++i) complaints.add("a:" + std::to_string(i), "wrong");
  complaints.say_count();
  REQUIRE(said.size() == 11);
  CHECK(said[9] == "a:9: wrong");
  CHECK(said[10] == "12 defects in the trace");
}

TEST_CASE("complaints: the first of a further kind is reported after ten of another") {
  std::vector<std::string> said;
  Complaints complaints(false, [&](const std::string& line) { said.push_back(line); });
  for (int i = 0; i < 12; ++i) complaints.add({.place = "a:" + std::to_string(i), .what = "wrong", .count = 2});
  complaints.add("a:12", "of another kind");
  complaints.say_count();
  REQUIRE(said.size() == 12);
  CHECK(said[10] == "a:12: of another kind");
  CHECK(said[11] == "25 defects in the trace");
}

TEST_CASE("complaints: a trace without defects gives no message") {
  Complaints complaints(false, [](const std::string&) { FAIL("said something"); });
  complaints.say_count();
}

TEST_CASE("complaints: if they are strict, the first is an error with its place") {
  Complaints complaints(true, [](const std::string&) {});
  CHECK_THROWS_WITH_AS(complaints.add("a:1", "wrong"), "a:1: wrong", cmt::FormatError);
}

TEST_CASE("complaints: a message about an event begins with its place") {
  std::vector<std::string> said;
  Complaints complaints(false, [&](const std::string& line) { said.push_back(line); });
  complaints.set_place([] { return std::string("a:7"); });
  complaints.add("wrong");
  CHECK(said == std::vector<std::string>{"a:7: wrong"});
}
