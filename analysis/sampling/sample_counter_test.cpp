// Checks what is counted of sampled traces: weights when the interval rises, the peak, slices and names.

#include "analysis/sampling/sample_counter.h"

#include <doctest/doctest.h>

#include <vector>

#include "cmt/error.h"

namespace cmt::analysis {
namespace {

constexpr std::uint64_t counted_interval = 1000;

SampledUses counted(const std::vector<Event>& events, By by = By::function, const char* slice = nullptr) {
  command::Complaints complaints(false, [](const std::string&) {});
  SampleCounter counter(by, counted_interval, slice == nullptr ? std::nullopt : trace::SliceRange::parse(slice),
                        complaints);
  for (const Event& event : events) {
    if (!counter.count_event(event)) break;
  }
  return counter.finish();
}

Event sampled(Tag tag, std::uint64_t size, StackId stack) {
  return {.kind = Kind::malloc, .size = size, .tag = tag, .stack = stack};
}
Event ended(Tag tag) { return {.kind = Kind::free, .old_tag = tag}; }

TEST_CASE("live samples count for more when the interval rises, allocated ones do not") {
  const SampledUses uses = counted({sampled(1, 10, 3),
                                    sampled(2, 10, 3),
                                    sampled(3, 20, 4),
                                    {.kind = Kind::unsample, .old_tag = 2},
                                    {.kind = Kind::sampling_interval, .size = 4000},
                                    ended(3)});
  CHECK(uses.first_interval == 1000);
  CHECK(uses.interval == 4000);
  CHECK(uses.entries.size() == 2);
  const SampledUse& first = uses.entries[0].use;
  CHECK(first.allocated.samples == 2);
  CHECK(first.allocated.bytes == doctest::Approx(2 * weight_of(10, 1000).bytes));
  CHECK(first.live.samples == 1);
  CHECK(first.live.bytes == doctest::Approx(weight_of(10, 4000).bytes));
  CHECK(uses.entries[1].use.live == Estimate{});
  CHECK(uses.peak_event == 3);
  CHECK(uses.total.peak.bytes == doctest::Approx(2 * weight_of(10, 1000).bytes + weight_of(20, 1000).bytes));
}

TEST_CASE("a realloc ends a sample, and makes one of its new block") {
  const SampledUses uses = counted({sampled(1, 10, 3),
                                    {.kind = Kind::realloc, .size = 50, .tag = 2, .old_tag = 1, .stack = 5},
                                    {.kind = Kind::realloc, .size = 0, .old_tag = 2, .stack = 6},
                                    {.kind = Kind::malloc, .size = 0, .tag = 3, .stack = 7}});
  CHECK(uses.entries.size() == 2);
  CHECK(uses.total.allocated.samples == 2);
  CHECK(uses.total.live == Estimate{});
}

TEST_CASE("a slice has what is allocated in it, and what is live at its end") {
  const std::vector<Event> events{sampled(1, 10, 3), sampled(2, 10, 4), sampled(3, 10, 3), ended(1), sampled(4, 10, 3)};
  const SampledUses uses = counted(events, By::function, "2:4");
  CHECK(uses.events == 2);
  CHECK(uses.entries[0].use.allocated.samples == 1);
  CHECK(uses.entries[0].use.live.samples == 1);
  CHECK(uses.entries[0].use.peak.samples == 2);
  CHECK(uses.entries[1].use.allocated == Estimate{});
  CHECK(uses.entries[1].use.live.samples == 1);
  CHECK_THROWS_AS(counted(events, By::function, "@none:"), FormatError);
}

TEST_CASE("samples by thread have the thread's name") {
  Event other = sampled(2, 64, 0);
  other.thread = 7;
  const SampledUses uses = counted({sampled(1, 10, 0), other}, By::thread);
  CHECK(uses.entries[1].name == "thread 7");
}

TEST_CASE("a sampling interval of a header") {
  Header header;
  CHECK(sampling_interval(header, "a") == 0);
  header.metadata = {{"sampled", "524288"}};
  CHECK(sampling_interval(header, "a") == 524288);
  for (const char* const text : {"", "0", "1x", "-5", "99999999999999999999"}) {
    header.metadata = {{"sampled", text}};
    CHECK_THROWS_AS(sampling_interval(header, "a"), FormatError);
  }
}

}  // namespace
}  // namespace cmt::analysis
