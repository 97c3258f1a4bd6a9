// Checks which functions leak steadily, by time and by events, over made-up phases of a program.
#include "cmtreport/findings/trends.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace cmt::report {
namespace {

/// A part of a program's life: at each of its moments it has some events, and keeps some blocks of 100 bytes.
struct Phase {
  std::size_t moments = 0;
  std::uint64_t events = 0;  ///< at each moment
  std::uint64_t kept = 0;    ///< blocks at each moment
};

struct MadeUp {
  FunctionSeries series{};
  MomentPlaces places{};

  StillLive up_to_end() const { return still_live_of(series, series.live_bytes.size() - 1, places); }
};

/// The moments are a millisecond apart.
MadeUp by_time(const std::vector<Phase>& phases) {
  MadeUp made{.series = {.function = FunctionId{1}, .live_bytes = {0}, .leaked_bytes = {0}, .leaked_blocks = {0}},
              .places = {.events = {0}, .times_ns = {0}, .are_even_by_time = true}};
  for (const Phase& phase : phases) {
    for (std::size_t i = 0; i < phase.moments; ++i) {
      made.places.events.push_back(made.places.events.back() + phase.events);
      made.places.times_ns.push_back(made.places.times_ns.back() + 1'000'000);
      made.series.leaked_blocks.push_back(made.series.leaked_blocks.back() + phase.kept);
      made.series.leaked_bytes.push_back(100 * made.series.leaked_blocks.back());
      made.series.live_bytes.push_back(made.series.leaked_bytes.back());
    }
  }
  return made;
}

/// The same program, with moments at even distances by events.
MadeUp by_events(const std::vector<Phase>& phases, std::uint64_t events) {
  const MadeUp timed = by_time(phases);
  MadeUp made;
  for (std::uint64_t event = 0; event <= timed.places.events.back(); event += events) {
    const auto at =
        std::lower_bound(timed.places.events.begin(), timed.places.events.end(), event) - timed.places.events.begin();
    const auto moment = static_cast<std::size_t>(at);
    made.places.events.push_back(event);
    made.places.times_ns.push_back(timed.places.times_ns[moment]);
    made.series.live_bytes.push_back(timed.series.live_bytes[moment]);
    made.series.leaked_bytes.push_back(timed.series.leaked_bytes[moment]);
    made.series.leaked_blocks.push_back(timed.series.leaked_blocks[moment]);
  }
  return made;
}

TEST_CASE("trends: a leak is steady if each tenth of the time has its part") {
  const StillLive live = by_time({{100, 10, 3}}).up_to_end();
  CHECK((live.is_steady && !live.is_by_events));
  CHECK((live.moment == 90 && live.blocks == 270 && live.bytes == 27'000 && live.begin < 0.06));
  CHECK(!by_time({{100, 10, 0}}).up_to_end().is_steady);
  CHECK(!by_time({{20, 10, 3}}).up_to_end().is_steady);  // too few moments
}

TEST_CASE("trends: the last allocation of what is still live is not the end of the nine tenths") {
  const StillLive live = by_time({{10, 10, 3}, {90, 10, 0}}).up_to_end();
  CHECK((live.moment == 90 && live.last == 10 && live.blocks == 30));
}

TEST_CASE("trends: a leak after a long start is steady by events") {
  const StillLive live = by_time({{40, 1, 0}, {60, 100, 3}}).up_to_end();
  CHECK((live.is_steady && live.is_by_events));
  CHECK((live.moment >= 93 && live.moment <= 94 && live.blocks == 3 * (live.moment - 40)));
  CHECK((live.begin > 0.42 && live.begin < 0.45));
}

TEST_CASE("trends: a leak with pauses between requests is steady by events") {
  CHECK(by_time({{10, 50, 3}, {20, 0, 0}, {15, 50, 3}, {25, 0, 0}, {30, 50, 3}}).up_to_end().is_steady);
}

TEST_CASE("trends: a table that is loaded once is no leak, however even its events are") {
  const std::vector<Phase> loads{{25, 400, 200}, {475, 1, 0}};
  CHECK(!by_time(loads).up_to_end().is_steady);
  CHECK(!by_events(loads, 40).up_to_end().is_steady);
  MadeUp without_times = by_events(loads, 40);
  without_times.places.times_ns.clear();
  CHECK(without_times.up_to_end().is_steady);  // nothing contradicts
  CHECK(!by_time({{40, 100, 50}, {60, 1, 0}}).up_to_end().is_steady);
}

TEST_CASE("trends: a table that is filled at the end is no leak") {
  CHECK(!by_time({{90, 0, 0}, {10, 1000, 500}}).up_to_end().is_steady);
}

TEST_CASE("trends: by events a leak is steady if the time does not contradict") {
  const StillLive live = by_events({{40, 1, 0}, {60, 100, 3}}, 50).up_to_end();
  CHECK((live.is_steady && !live.is_by_events));  // the events are the axis
  CHECK(!by_events({{10, 600, 20}, {90, 1, 0}}, 50).up_to_end().is_steady);
}

TEST_CASE("trends: a moment that has all events shows no leak") {
  CHECK(!by_time({{50, 0, 0}, {1, 10'000, 5'000}, {49, 0, 0}}).up_to_end().is_steady);
  CHECK(!by_time({{50, 1, 0}, {1, 10'000, 5'000}, {49, 1, 1}}).up_to_end().is_steady);
}

}  // namespace
}  // namespace cmt::report
