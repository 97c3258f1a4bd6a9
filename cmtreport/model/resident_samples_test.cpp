// Checks the samples of resident memory against a plain list of events, and which times count as retention.
#include "cmtreport/model/resident_samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace cmt::report {
namespace {

constexpr std::uint64_t mib = 1 << 20;

/// A step of a program: it has so many live bytes, and is sampled if `resident` is known.
struct Step {
  std::uint64_t live = 0;
  std::uint64_t resident = unknown;
};

ResidentSamples samples_of(const std::vector<Step>& steps) {
  ResidentSamples samples;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    samples.note_live(steps[i].live);
    if (steps[i].resident != unknown)
      samples.add(
          {.resident_bytes = steps[i].resident, .live_bytes = steps[i].live, .event = i + 1, .position = i + 1});
  }
  samples.finish();
  return samples;
}

void append(std::vector<Step>& steps, std::size_t count, Step step) { steps.insert(steps.end(), count, step); }

}  // namespace

TEST_CASE("resident samples: spans have the bounds that a plain list of events has, however many samples there are") {
  std::mt19937_64 random(5);
  for (const std::size_t count : {1u, 7u, 512u, 513u, 5000u}) {
    std::vector<Step> steps(count * 3);
    for (Step& step : steps) {
      step.live = random() % 1000;
      if (random() % 3 == 0) step.resident = random() % 1000;
    }
    const ResidentSamples samples = samples_of(steps);
    CHECK(samples.spans().size() <= ResidentSamples::spans_max);
    std::size_t begin = 0, sampled = 0;
    for (const SampleSpan& span : samples.spans()) {
      std::uint64_t resident_min = unknown, live_max = 0, in_span = 0;
      std::uint64_t live_max_before = begin == 0 ? 0 : steps[begin - 1].live;
      for (; begin < span.last.event; ++begin) {
        std::uint64_t& max = begin + 1 < span.first.event ? live_max_before : live_max;
        max = std::max(max, steps[begin].live);
        resident_min = std::min(resident_min, steps[begin].resident);
        if (steps[begin].resident != unknown && in_span++ == 0) CHECK(span.first.event == begin + 1);
      }
      CHECK(span.resident_bytes_min == resident_min);
      CHECK(span.live_bytes_max == live_max);
      CHECK(span.live_bytes_max_before == std::max(live_max_before, span.first.live_bytes));
      CHECK(span.samples == in_span);
      CHECK(span.last.live_bytes == steps[begin - 1].live);
      sampled += in_span;
    }
    std::size_t expected = 0;
    ResidentSample largest;
    for (const Step& step : steps) {
      if (step.resident == unknown) continue;
      ++expected;
      if (largest.is_known() && step.resident <= largest.resident_bytes) continue;
      largest = {.resident_bytes = step.resident, .live_bytes = step.live};
    }
    CHECK(sampled == expected);
    CHECK(samples.largest().resident_bytes == largest.resident_bytes);
    CHECK(samples.largest().live_bytes == largest.live_bytes);
  }
}

TEST_CASE("resident samples: live bytes that are not resident are found where they are most") {
  CHECK(!samples_of({}).largest().is_known());
  CHECK(!samples_of({{5, 10}}).least_backed().is_known());
  const ResidentSamples samples = samples_of({{5, 10}, {90, 20}, {95, 30}, {200, unknown}});
  CHECK(samples.least_backed().event == 2);
  CHECK(samples.largest().event == 3);
}

TEST_CASE("retention: a time at the end, from the first sample without the live bytes") {
  std::vector<Step> steps;
  append(steps, 20, {100 * mib, 101 * mib});
  append(steps, 20, {1 * mib, 99 * mib});
  const auto found = find_retentions(samples_of(steps).spans(), 8 * mib, 3);
  REQUIRE(found.size() == 1);
  CHECK(found[0].span.first.event == 21);
  CHECK(found[0].span.last.event == 40);
  CHECK(found[0].bytes() == 98 * mib);
  CHECK(found[0].live_bytes_before == 100 * mib);
}

TEST_CASE("retention: bytes that were live between two samples were in use") {
  std::vector<Step> steps;
  for (int i = 0; i < 50; ++i) {
    steps.push_back({1 * mib, 99 * mib});
    steps.push_back({98 * mib, unknown});
  }
  CHECK(find_retentions(samples_of(steps).spans(), 8 * mib, 3).empty());
}

TEST_CASE("retention: a quarter of the memory, eight MiB and a twentieth of the samples") {
  const auto count_with = [](std::uint64_t live, std::uint64_t resident, std::size_t samples) {
    std::vector<Step> steps;
    append(steps, 100, {resident, resident});
    append(steps, samples, {live, resident});
    return find_retentions(samples_of(steps).spans(), 8 * mib, 3).size();
  };
  CHECK(count_with(2 * mib, 10 * mib, 50) == 1);
  CHECK(count_with(3 * mib, 10 * mib, 50) == 0);
  CHECK(count_with(75 * mib, 100 * mib, 50) == 1);
  CHECK(count_with(76 * mib, 100 * mib, 50) == 0);
  CHECK(count_with(0, 100 * mib, 5) == 1);  // of 105
  CHECK(count_with(0, 100 * mib, 4) == 0);
}

TEST_CASE("retention: two times between which the memory was used are two, else they are one") {
  std::vector<Step> steps;
  append(steps, 50, {0, 100 * mib});
  append(steps, 10, {100 * mib, 100 * mib});
  append(steps, 30, {0, 60 * mib});
  append(steps, 30, {0, 40 * mib});
  const auto found = find_retentions(samples_of(steps).spans(), 8 * mib, 3);
  REQUIRE(found.size() == 2);
  CHECK(found[0].span.last.event == 50);
  CHECK(found[1].span.first.event == 61);
  CHECK(found[1].span.last.event == 120);
  CHECK(found[1].bytes() == 40 * mib);
}

TEST_CASE("retention: times do not overlap, however slowly the live bytes change") {
  std::vector<Step> steps;
  for (std::uint64_t live = 100; live > 0; --live) append(steps, 2, {live * mib, 101 * mib});
  for (std::uint64_t live = 1; live < 100; ++live) append(steps, 2, {live * mib, (200 - live) * mib});
  const auto found = find_retentions(samples_of(steps).spans(), 8 * mib, 3);
  REQUIRE(!found.empty());
  for (std::size_t i = 1; i < found.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK((found[i].span.last.event < found[j].span.first.event ||
             found[j].span.last.event < found[i].span.first.event));
    }
  }
}

}  // namespace cmt::report
