// Checks what is counted of sampled traces: weights when the interval rises, the peak, slices and names.

#include "analysis/sampling/sample_counter.h"

#include <doctest/doctest.h>

#include <vector>

#include "cmt/error.h"

namespace cmt::analysis {
namespace {

constexpr std::uint64_t counted_interval = 1000;

Uses counted(const std::vector<Event>& events, By by = By::function, const char* slice = nullptr) {
  command::Complaints complaints(false, [](const std::string&) {});
  SampleCounter counter(by, counted_interval, slice == nullptr ? std::nullopt : trace::SliceRange::parse(slice),
                        complaints);
  for (const Event& event : events) {
    if (!counter.count_event(event)) break;
  }
  return counter.finish();
}

SampledUse total_of(const Uses& uses) {
  Use total;
  for (const Uses::Entry& entry : uses.entries) total += entry.use;
  return *total.sampled;
}

Event sampled(Tag tag, std::uint64_t size, StackId stack) {
  return {.kind = Kind::malloc, .size = size, .tag = tag, .stack = stack};
}
Event ended(Tag tag) { return {.kind = Kind::free, .old_tag = tag}; }

TEST_CASE("live samples count for more when the interval rises, allocated ones do not") {
  const Uses uses = counted({sampled(1, 10, 3),
                             sampled(2, 10, 3),
                             sampled(3, 20, 4),
                             {.kind = Kind::unsample, .old_tag = 2},
                             {.kind = Kind::sampling_interval, .size = 4000},
                             ended(3)});
  CHECK(uses.entries.size() == 2);
  const SampledUse& first = *uses.entries[0].use.sampled;
  CHECK(first.allocated.interval == 4000);
  CHECK(first.allocated.samples == 2);
  CHECK(first.allocated.bytes == doctest::Approx(2 * weight_of(10, 1000).bytes));
  CHECK(first.live.samples == 1);
  CHECK(first.live.bytes == doctest::Approx(weight_of(10, 4000).bytes));
  CHECK(uses.entries[1].use.sampled->live == Estimate{.interval = 4000});
  CHECK(uses.peak_event == 3);
  CHECK(total_of(uses).peak.bytes == doctest::Approx(2 * weight_of(10, 1000).bytes + weight_of(20, 1000).bytes));
}

TEST_CASE("a realloc ends a sample, and makes one of its new block") {
  const Uses uses = counted({sampled(1, 10, 3),
                             {.kind = Kind::realloc, .size = 50, .tag = 2, .old_tag = 1, .stack = 5},
                             {.kind = Kind::realloc, .size = 0, .old_tag = 2, .stack = 6},
                             {.kind = Kind::malloc, .size = 0, .tag = 3, .stack = 7}});
  CHECK(uses.entries.size() == 2);
  CHECK(total_of(uses).allocated.samples == 2);
  CHECK(total_of(uses).live == Estimate{.interval = 1000});
}

TEST_CASE("a slice has what is allocated in it, and what is live at its end") {
  const std::vector<Event> events{sampled(1, 10, 3), sampled(2, 10, 4), sampled(3, 10, 3), ended(1), sampled(4, 10, 3)};
  const Uses uses = counted(events, By::function, "2:4");
  CHECK(uses.events == 2);
  CHECK(uses.entries[0].use.sampled->allocated.samples == 1);
  CHECK(uses.entries[0].use.sampled->live.samples == 1);
  CHECK(uses.entries[0].use.sampled->peak.samples == 2);
  CHECK(uses.entries[1].use.sampled->allocated == Estimate{.interval = 1000});
  CHECK(uses.entries[1].use.sampled->live.samples == 1);
  CHECK(uses.entries[0].use.growth == 0);
  CHECK(counted(events, By::function, "4:").entries[0].use.growth > 500);
  CHECK_THROWS_AS(counted(events, By::function, "@none:"), FormatError);
}

TEST_CASE("samples by thread have the thread's name") {
  Event other = sampled(2, 64, 0);
  other.thread = 7;
  const Uses uses = counted({sampled(1, 10, 0), other}, By::thread);
  CHECK(uses.entries[1].name == "thread 7");
}

}  // namespace
}  // namespace cmt::analysis
