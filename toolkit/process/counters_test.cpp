// Checks that counters rise, or that a reason says why there are none.

#include "toolkit/process/counters.h"

#include <doctest/doctest.h>

using namespace cmt::process;

TEST_CASE("counters: work is counted, or there is a reason why not") {
  const Counters counters(0);
  counters.start();
  const CounterValues before = counters.read();
  volatile int work = 0;
  while (work < 1'000'000) work = work + 1;
  const CounterValues after = counters.stop();
  bool any = false;
  for (std::size_t i = 0; i < counter_names.size(); ++i) {
    any = any || after[i];
    if (before[i] && after[i]) CHECK(*before[i] <= *after[i]);
  }
  if (!counters.missing().empty()) CHECK_FALSE(any);
  const bool counts_instructions = before[0] && after[0];
  if (counts_instructions) CHECK(*after[0] - *before[0] > 1'000'000);
}

TEST_CASE("counters: a missing thread has none, and an error says so") {
  const Counters counters(0x7ffffffe, Counters::Heirs::threads);
  CHECK_FALSE(counters.missing().empty());
  CHECK(counters.error() != 0);
  CHECK_FALSE(counters.read()[0]);
}
