// Tests the values of options, and the messages for options that do not go together.
#include "cmtreplay/options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cmt::replay;
using cmt::command::UsageError;

namespace {

Options options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cmtreplay");
  return parse_options({static_cast<int>(arguments.size()), arguments.data(), known_options});
}

}  // namespace

TEST_CASE("options: libc on standard input, as many runs as needed, is the default") {
  const Options none = options({});
  CHECK(none.allocators == std::vector<std::string>{"libc"});
  CHECK(none.file == "-");
  CHECK(none.runs == 0);
  CHECK(none.budget_ns == 10'000'000'000);
}

TEST_CASE("options: a number of runs, or a budget") {
  CHECK(options({"--runs=7"}).runs == 7);
  CHECK(options({"--budget=2min"}).budget_ns == 120'000'000'000);
  CHECK_THROWS(options({"--budget=1ms"}));
  CHECK_THROWS(options({"--runs=7", "--budget=2min"}));
}

TEST_CASE("options: allocators keep their order") {
  CHECK(options({"--alloc=b", "--alloc", "a", "x.cmt"}).allocators == std::vector<std::string>{"b", "a"});
  CHECK(options({"--alloc=b,c,X=1,d", "--alloc=a", "x.cmt"}).allocators ==
        std::vector<std::string>{"b", "c,X=1,d", "a"});
  CHECK_THROWS_WITH_AS(options({"--alloc=b,", "x.cmt"}), "--alloc needs a name", UsageError);
}

TEST_CASE("options: a dash is standard input") { CHECK(options({"-"}).file == "-"); }

TEST_CASE("options: how the trace is replayed") {
  const Options some = options({"--order=strict", "--threads=1", "--pace=x2.5", "--touch=all", "--pin=0,2-3",
                                "--timeout=7s", "--seed=9", "--stream"});
  CHECK(some.trace.strict);
  CHECK(!some.trace.threads);
  CHECK(some.pace == 2.5);
  CHECK(some.touch == "all");
  CHECK(!some.counterparts);
  CHECK(options({"--give-back=counterpart"}).counterparts);
  CHECK(some.cpus == std::vector<int>{0, 2, 3});
  CHECK(some.timeout_seconds == 7);
  CHECK(some.seed == 9);
  CHECK(some.trace.prepared_bytes_max == 0);
  CHECK(options({"--pace=real"}).pace == 1);
  CHECK(options({}).clock == ClockRuns::memory);
  CHECK(options({"--clock=recorded", "--pace=x2"}).clock == ClockRuns::all);
  CHECK(options({"--clock=system"}).clock == ClockRuns::none);
  CHECK(options({"--pace=real"}).clock == ClockRuns::none);
  CHECK(options({"--timeout=2min"}).timeout_seconds == 120);
  CHECK(options({"--prepared"}).trace.prepared_bytes_max == std::uint64_t{1} << 46);
}

TEST_CASE("options: -v is the new trace") { CHECK(options({"-v", "x"}).new_trace); }

TEST_CASE("options: a new trace's file has the allocator's name in it") {
  CHECK(output_path("x.trace", "jemalloc") == "x.trace");
  CHECK(output_path("%a/%a.cmt", "./my so.so") == "my_so.so/my_so.so.cmt");
}

TEST_CASE("options: wrong use is said in a line") {
  CHECK_THROWS_WITH_AS(options({"--nothing"}), "unrecognised option '--nothing'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--runs=0"}), "--runs: expected a number from 1 to 1000, not '0'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--runs=x"}), "--runs: expected a number from 1 to 1000, not 'x'", UsageError);
  CHECK_THROWS_WITH_AS(options({"a", "-"}), "standard input cannot be one of several traces", UsageError);
  CHECK_THROWS_WITH_AS(options({"--suite=slow"}), "--suite: expected quick or full, not 'slow'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--results=d"}), "expected traces, a folder of traces, or --suite", UsageError);
  CHECK_THROWS_AS(options({"--results=d", "--task=3-2", "a"}), UsageError);
  CHECK_THROWS_WITH_AS(
      options({"-v", "--alloc=a", "--alloc=b"}),
      "-v writes the new trace of one allocator, and 2 are given; -o with %a in its name writes one each", UsageError);
  CHECK_THROWS_WITH_AS(options({"-o", "x", "--alloc=a", "--alloc=b"}),
                       "-o needs %a in its name where several allocators are given", UsageError);
  CHECK_THROWS_WITH_AS(options({"--order=any"}), "--order: expected free or strict, not 'any'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--threads=2"}), "--threads: expected recorded or 1, not '2'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--give-back=any"}), "--give-back: expected preloaded or counterpart, not 'any'",
                       UsageError);
  CHECK_THROWS_WITH_AS(options({"--touch=some"}), "--touch: expected page, none, first or all, not 'some'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--pace=2"}), "--pace: expected real or xN, N from 0.001 to 1000000, not '2'",
                       UsageError);
  CHECK_THROWS_WITH_AS(options({"--pin=0,"}), "--pin: expected a list of CPUs such as 0,2-3, not '0,'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--pin=3-1"}), "--pin: expected a list of CPUs such as 0,2-3, not '3-1'", UsageError);
  CHECK_THROWS_AS(options({"--pace=x0"}), UsageError);
  CHECK_THROWS_WITH_AS(options({"--clock=real"}), "--clock: expected recorded or system, not 'real'", UsageError);
  CHECK_THROWS_WITH_AS(options({"--timeout=10ms"}),
                       "--timeout: expected a time of at least 1s, such as 2min, not '10ms'", UsageError);
  CHECK_THROWS_AS(options({"--stream", "--prepared"}), UsageError);
  CHECK_THROWS_AS(options({"--run=3"}), UsageError);
}

TEST_CASE("options: several traces are a matrix") {
  CHECK_FALSE(options({"a"}).matrix.is_asked);
  CHECK(options({"a", "b"}).matrix.traces == std::vector<std::string>{"a", "b"});
  CHECK(options({"--suite"}).matrix.suite == "full");
  const TaskRange range = options({"--results=d", "--task=3-7", "a"}).matrix.tasks;
  CHECK(range.first == 3);
  CHECK(range.last == 7);
}

TEST_CASE("options: --help-all names every option that is parsed, and --help is one screen") {
  const std::string help = help_all_text, screen = help_text;
  CHECK(std::count(screen.begin(), screen.end(), '\n') < 50);  // a line on what is installed follows
  for (const auto& option : known_options) CHECK(help.find("--" + option.name) != help.npos);
}
