#include "command/traces.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using namespace cmt::command;

TEST_CASE("traces: a pattern stands for a program's name, its number and what is written out") {
  CHECK(stands_for("%n.%p.cmt", "app.12.cmt"));
  CHECK(stands_for("%n.%p.cmt", "a.b.12.cmt"));
  CHECK(stands_for("t%%.cmt", "t%.cmt"));
  CHECK_FALSE(stands_for("%n.%p.cmt", "app.cmt"));
  CHECK_FALSE(stands_for("%n.%p.cmt", "app.12.trace"));
  CHECK_FALSE(stands_for("%n.%p.cmt", ".12.cmt"));
  CHECK_FALSE(stands_for("x.cmt", "y.cmt"));
}

TEST_CASE("traces: a number before the last dot is the tracer's, where a name was taken") {
  CHECK(stands_for("app.cmt", "app.2.cmt"));
  CHECK(stands_for("%n.%p.cmt", "app.12.3.cmt"));
  CHECK(stands_for("app", "app.2"));
  CHECK_FALSE(stands_for("app.cmt", "app.x.cmt"));
}

TEST_CASE("traces: what is new is told from what was there") {
  std::string folder = "/tmp/traces.XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/a.1.cmt").put('x');
  const Traces traces(folder + "/%n.%p.cmt");
  CHECK(traces.added().empty());
  std::ofstream(folder + "/b.2.cmt").put('x');
  std::ofstream(folder + "/b.2.trace").put('x');
  CHECK(traces.added() == std::vector<std::string>{folder + "/b.2.cmt"});
  std::filesystem::remove_all(folder);
}
