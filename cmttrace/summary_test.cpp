// The lines that cmttrace prints while it waits for collectors.
#include "cmttrace/summary.h"

#include <doctest/doctest.h>

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
