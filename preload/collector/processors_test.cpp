#include "preload/collector/processors.h"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace cmt::collector;

TEST_CASE("processors: who has left one may come back, and where all are busy nobody moves") {
  cpu_set_t before, after, all;
  CPU_ZERO(&all);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  const Processors processors;
  const int here = ::sched_getcpu();
  cpu_set_t busy;
  CPU_ZERO(&busy);
  CPU_SET(static_cast<std::size_t>(here), &busy);
  for (const cpu_set_t& each : {busy, all}) {
    processors.leave(each, here, 0);
    REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
  }
}
