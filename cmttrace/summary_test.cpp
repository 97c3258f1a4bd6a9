// The lines that cmttrace prints while it waits for collectors.
#include "cmttrace/summary.h"

#include <doctest/doctest.h>
#include <unistd.h>

using cmt::launch::BegunTrace;
using cmt::trace_launcher::Standstill;

TEST_CASE("standstill: a collector that reports nothing new for 30 s is named once, until it comes on") {
  using std::chrono::seconds;
  Standstill standstill;
  const Standstill::Clock::time_point begin = Standstill::Clock::now();
  std::vector<BegunTrace> traces{{.path = "whole.cmt", .ended = true}, {.path = "app.cmt", .encoded = 5, .waiting = 9}};
  CHECK(standstill.look(traces, begin).empty());
  CHECK(standstill.look(traces, begin + seconds(29)).empty());
  CHECK(
      standstill.look(traces, begin + seconds(30)).starts_with("app.cmt: its collector has made no progress for 30 s"));
  CHECK(standstill.look(traces, begin + seconds(90)).empty());
  traces[1].encoded = 6;  // their sum stays
  traces[1].waiting = 8;
  CHECK(standstill.look(traces, begin + seconds(91)).empty());
  CHECK(standstill.look(traces, begin + seconds(120)).empty());
  CHECK(standstill.look(traces, begin + seconds(121)).starts_with("app.cmt: "));
  traces[1].ended = true;
  CHECK(standstill.look(traces, begin + seconds(500)).empty());
  CHECK(standstill.look(traces, begin + seconds(600)).empty());
}

TEST_CASE("summary: the blocks of pools are named apart, and are no part of malloc's figures") {
  cmt::launch::RecordedTraces recorded;
  recorded.events = 5;
  recorded.files.push_back({.path = "app.cmt", .events = 5, .threads = 1});
  recorded.files[0].totals = {.allocations = 2, .peak_live_bytes = 10, .end_live_bytes = 8};
  const auto first_line = [&] { return cmt::trace_launcher::summarise(recorded, {.seconds = 2})[0]; };
  CHECK(first_line() == "app.cmt: 2 allocations by 1 thread, peak 10 B, 8 B live at the end; 2.00 s; nothing was lost");
  recorded.files[0].pool_blocks = 2851;
  CHECK(first_line() ==
        "app.cmt: 2 allocations by 1 thread, peak 10 B, 8 B live at the end; pools: 2,851 blocks allocated; "
        "2.00 s; nothing was lost");
}

TEST_CASE("summary: the next command names no option, and not the standard input") {
  cmt::launch::RecordedTraces recorded;
  recorded.events = 5;
  recorded.files.push_back({.path = "-x.cmt", .events = 5, .threads = 1});
  const auto last_line = [&](bool has_stacks) {
    return cmt::trace_launcher::summarise(recorded, {.seconds = 2, .has_stacks = has_stacks, .has_trace = true}).back();
  };
  CHECK(last_line(true) == "next: cmtreport -o ./-x.html ./-x.cmt");
  recorded.files[0].path = "-";
  CHECK(last_line(false) == "next: cmtreplay ./-");
}

TEST_CASE("summary: why functions of node have no names") {
  using State = cmt::trace_launcher::NodeNames::State;
  cmt::launch::RecordedTraces recorded;
  recorded.files.push_back({.path = "app.cmt", .program = "nodejs", .process = 1 << 30, .threads = 1});
  const auto advice = [&](State state) {
    return cmt::trace_launcher::summarise(recorded, {.has_stacks = true, .node_names = state}).back();
  };
  const std::string lacking = "JavaScript functions will have no names in call stacks: ";
  const std::string options = cmt::trace_launcher::node_name_options, list = "/tmp/perf-1073741824.map";
  CHECK(advice(State::not_wanted) == lacking + "set NODE_OPTIONS='" + options + "'");
  CHECK(advice(State::refused) == lacking + "this node does not take " + options);
  CHECK(advice(State::added) == lacking + "node has not written " + list + ", though NODE_OPTIONS has " + options);
  CHECK(advice(State::switched_off) == lacking + "the command or NODE_OPTIONS has --no-perf-basic-prof");
  CHECK(advice(State::snapshot) == lacking + "V8's snapshots do not go with " + options);
  CHECK(advice(State::chosen) == lacking + "node has not written " + list);
  const auto last_of_failed = [&](State state) {
    return cmt::trace_launcher::summarise(recorded, {.status = 1, .has_stacks = true, .node_names = state}).back();
  };
  CHECK(last_of_failed(State::added) == "V8 refuses code caches and snapshots that were made without " + options +
                                            ": if the command failed by that, add --frames=none");
  CHECK(last_of_failed(State::chosen) == lacking + "node has not written " + list);
  recorded.files[0].program = "java";
  CHECK(advice(State::added).starts_with("Java methods will have no names in call stacks: with Java 17"));
  recorded.files[0].process = getpid();  // attached to, and still there
  CHECK(advice(State::added) ==
        "Java methods have no names in call stacks until the process lists them: with Java 17 or later, jcmd " +
            std::to_string(getpid()) +
            " Compiler.perfmap; without -XX:+PreserveFramePointer, which it does not show, most methods are not in the "
            "stacks");
}

TEST_CASE("summary: how many lines of Python were named, and what was not") {
  cmt::launch::RecordedTraces recorded;
  recorded.events = 5;
  recorded.files.push_back({.path = "app.cmt", .events = 5, .threads = 1});
  recorded.traces.push_back({.path = "app.cmt", .ended = true});
  const auto first_line = [&] { return cmt::trace_launcher::summarise(recorded, {.seconds = 2})[0]; };
  CHECK(first_line() == "app.cmt: 5 events of 1 thread; 2.00 s; nothing was lost");
  recorded.traces.push_back({.path = "a.cmt", .ended = true, .lines_named = 2851});
  recorded.traces[0].lines_named = 1;
  CHECK(first_line() == "app.cmt: 5 events of 1 thread; 2.00 s; 2,852 lines of Python named; nothing was lost");
  recorded.traces[0].lines_unplaced = 1;
  recorded.traces[1].lines_nameless = 1200;
  CHECK(first_line() ==
        "app.cmt: 5 events of 1 thread; 2.00 s; 2,852 lines of Python named; the lines of Python in 1 call stack not "
        "known; 1,200 lines of Python not named, as there are too many");
}
