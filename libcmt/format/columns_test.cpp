// The columns of times: differences that have a code, and the one that has none.
#include "libcmt/format/columns.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cmt;
using namespace cmt::format;

TEST_CASE("columns: a time that is 2^63 ns from the one before is unknown, and later times are right") {
  const std::uint64_t far = std::uint64_t{1} << 63;
  const std::vector<std::uint64_t> times{5, unknown, far + 5, 9, 0, far - 1, far, far + far / 2};
  const std::vector<std::uint64_t> expected{5, unknown, unknown, 9, 0, far - 1, far, far + far / 2};
  TimeEncoder encoder;
  for (const std::uint64_t time : times) encoder.add(time);
  CHECK(encoder.last_ns() == times.back());
  const std::string bytes = encoder.finish();
  TimeDecoder decoder;
  decoder.start(bytes, 0);
  std::vector<Event> events(times.size());
  decoder.fill(events);
  for (std::size_t i = 0; i < events.size(); ++i) CHECK(events[i].time_ns == expected[i]);
  CHECK(decoder.at_end());
}
