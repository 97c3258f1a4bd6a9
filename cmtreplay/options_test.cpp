#include "cmtreplay/options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cmt::replay;
using cmt::command::UsageError;

namespace {

Options options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cmtreplay");
  return options_of({static_cast<int>(arguments.size()), arguments.data(), known_options});
}

}  // namespace

TEST_CASE("options: libc on standard input, five runs, is the default") {
  const Options none = options({});
  CHECK(none.allocators == std::vector<std::string>{"libc"});
  CHECK(none.file == "-");
  CHECK(none.runs == 5);
}

TEST_CASE("options: allocators keep their order") {
  CHECK(options({"--alloc=b", "--alloc", "a", "x.cmt"}).allocators == std::vector<std::string>{"b", "a"});
}

TEST_CASE("options: a dash is standard input") { CHECK(options({"-"}).file == "-"); }

TEST_CASE("options: -v is the new trace") { CHECK(options({"-v", "x"}).new_trace); }

TEST_CASE("options: wrong use is said in a line") {
  CHECK_THROWS_WITH_AS(options({"--nothing"}), "unrecognised option '--nothing'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--runs=0"}), "--runs is a number from 1 to 1000, not '0'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--runs=x"}), "--runs is a number from 1 to 1000, not 'x'", UsageError);
  CHECK_THROWS_WITH_AS(options({"a", "b"}), "one FILE at most, not also 'b'", UsageError);
  CHECK_THROWS_WITH_AS(options({"-v", "--alloc=a", "--alloc=b"}),
                       "-v writes the new trace of one allocator, and 2 are given", UsageError);
  CHECK_THROWS_AS(options({"--run=3"}), UsageError);
}

TEST_CASE("options: --help names every option that is parsed") {
  const std::string help = help_text;
  for (const auto& option : known_options) CHECK(help.find("--" + option.name) != help.npos);
}
