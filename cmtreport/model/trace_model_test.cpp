// Checks the model of random traces against counts by definition, and the ends of the axis.
#include "cmtreport/model/trace_model.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace cmt::report {
namespace {

/// A random program of `count` events: 20 stacks, of which some free what they made, and 3 threads.
std::vector<Event> random_events(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Event> events;
  std::vector<Tag> live;
  Tag next = 1;
  std::uint64_t time = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Event event;
    event.thread = static_cast<std::uint32_t>(random() % 3);
    event.time_ns = time += random() % 100'000 * (random() % 50 == 0 ? 1000 : 1);
    const bool frees = !live.empty() && random() % 100 < (i / 1000 % 2 == 0 ? 40u : 60u);
    if (frees) {
      std::swap(live[random() % live.size()], live.back());
      event.kind = Kind::free;
      event.old_tag = live.back();
      live.pop_back();
    } else {
      event.size = random() % 1000;
      event.tag = next++;
      event.stack = static_cast<StackId>(random() % 20);
      live.push_back(event.tag);
    }
    events.push_back(event);
  }
  return events;
}

/// The same figures, counted without intervals: what was live, by stack, after each event.
struct Plain {
  explicit Plain(const std::vector<Event>& events) {
    std::map<Tag, Event> live;
    std::map<KeyId, std::uint64_t> bytes;
    for (const Event& event : events) {
      if (event.old_tag != 0) {
        bytes[live[event.old_tag].stack] -= live[event.old_tag].size;
        live.erase(event.old_tag);
      } else {
        live[event.tag] = event;
        bytes[event.stack] += event.size;
      }
      after.push_back(bytes);
    }
    for (const auto& [tag, event] : live) leaked[event.stack] += event.size;
  }
  static std::uint64_t total(const std::map<KeyId, std::uint64_t>& bytes) {
    std::uint64_t sum = 0;
    for (const auto& [key, more] : bytes) sum += more;
    return sum;
  }
  std::vector<std::map<KeyId, std::uint64_t>> after;
  std::map<KeyId, std::uint64_t> leaked;
};

/// Bytes that each thread asked for in each interval.
using BytesOfThreads = std::map<std::pair<std::uint32_t, std::size_t>, std::uint64_t>;

BytesOfThreads bytes_of_threads(const TraceModel& model) {
  BytesOfThreads bytes;
  for (const auto& [thread, counts] : model.threads()) {
    for (const ThreadActivity::Entry& entry : counts.activity.entries())
      bytes[{thread, entry.interval(model.intervals().width())}] += entry.bytes;
  }
  return bytes;
}

void check_against_plain(const std::vector<Event>& events, bool by_time, std::uint64_t widen = 1) {
  command::Complaints complaints(true, [](const std::string&) {});
  TraceModel model({.by_time = by_time, .by_stack = true}, complaints);
  for (const Event& event : events) model.count_event(event);
  model.finish();
  model.intervals().widen_to(model.intervals().width() * widen);
  const Plain plain(events);
  std::map<KeyId, std::uint64_t> live, leaked;
  std::size_t event = 0, position = 0;
  BytesOfThreads of_threads;
  CHECK(model.intervals().intervals().size() <= intervals_max);
  for (const Interval& interval : model.intervals().intervals()) {
    std::map<KeyId, std::uint64_t> at_peak = live;
    position += model.intervals().width();
    interval.changes.for_each([&](KeyId key, const SparseMeasures& measures) {
      live[key] += measures[Measure::live_bytes];
      at_peak[key] += measures[Measure::interval_peak_bytes];
    });
    std::uint64_t peak = event == 0 ? 0 : Plain::total(plain.after[event - 1]), peak_event = event;
    for (; event < interval.last_event; ++event) {
      const std::uint64_t now = Plain::total(plain.after[event]);
      if (now > peak) peak_event = event + 1;
      const auto index = static_cast<std::size_t>(&interval - model.intervals().intervals().data());
      if (events[event].makes_block()) of_threads[{events[event].thread, index}] += events[event].size;
      peak = std::max(peak, now);
      REQUIRE((by_time ? events[event].time_ns : event + 1) <= position);
    }
    if (event < events.size()) REQUIRE((by_time ? events[event].time_ns : event + 1) > position);
    CHECK(interval.peak.bytes == peak);
    CHECK(interval.peak_event == peak_event);
    CHECK(Plain::total(at_peak) == peak);
    if (peak_event != 0) {
      for (const auto& [key, bytes] : plain.after[peak_event - 1]) CHECK(at_peak[key] == bytes);
    }
    if (event == 0) continue;
    for (const auto& [key, bytes] : plain.after[event - 1]) CHECK(live[key] == bytes);
  }
  CHECK(event == events.size());
  CHECK(bytes_of_threads(model) == of_threads);
  for (const LeakedBlocks& blocks : model.leaked()) leaked[blocks.key] += blocks.amount.bytes;
  for (const auto& [key, bytes] : plain.leaked) CHECK(leaked[key] == bytes);
}

}  // namespace

TEST_CASE(
    "trace model: live bytes and the peak of each interval are those of each stack, however often they were joined") {
  for (const std::size_t count : {1u, 2u, 64u, 65u, 5000u, 40'000u}) {
    check_against_plain(random_events(count, 1), false);
    check_against_plain(random_events(count, 2), true);
  }
  check_against_plain(random_events(40'000, 3), true, 4);
}

TEST_CASE("trace model: a trace without events has no interval, one at time 0 has one") {
  check_against_plain({}, true);
  Event event;
  event.size = 8;
  event.tag = 1;
  event.time_ns = 0;
  check_against_plain({event}, true);
  event.time_ns = std::uint64_t{1} << 60;
  check_against_plain({event}, true);
}

TEST_CASE("trace model: a sample of an impossible size is left out") {
  command::Complaints complaints(true, [](const std::string&) {});
  TraceModel model({}, complaints);
  model.count_event({.kind = Kind::sample, .size = unknown});
  model.count_event({.kind = Kind::sample, .size = 4096});
  model.finish();
  CHECK(model.samples().largest().resident_bytes == 4096);
}

TEST_CASE("trace model: times beyond the end of the axis are at its end") {
  for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{1}, position_max}) {
    command::Complaints complaints(true, [](const std::string&) {});
    TraceModel model({.by_time = true, .start = start}, complaints);
    for (Tag tag = 1; tag <= 3; ++tag) {
      Event event;
      event.size = 8;
      event.tag = tag;
      event.time_ns = tag == 1 ? 0 : unknown - 4 + tag;
      model.count_event(event);
    }
    model.finish();
    CHECK(model.intervals().end_position() == position_max);
    CHECK(model.intervals().intervals().back().live.blocks == 3);
  }
}

TEST_CASE("trace model: temporary, short-lived and foreign blocks are counted where they end") {
  command::Complaints complaints(true, [](const std::string&) {});
  TraceModel model({.by_stack = true}, complaints);
  for (Tag tag = 1; tag <= 3; ++tag) {
    Event made;
    made.size = 100;
    made.tag = tag;
    made.stack = 7;
    made.thread = tag == 3 ? 1 : 0;
    model.count_event(made);
    if (tag == 2) continue;
    Event freed;
    freed.kind = Kind::free;
    freed.old_tag = tag;
    model.count_event(freed);
  }
  model.finish();
  Measures sum;
  for (const Interval& interval : model.intervals().intervals())
    interval.changes.for_each([&](KeyId, const SparseMeasures& measures) { measures.add_to(sum); });
  CHECK(sum[Measure::temporary_blocks] == 1);
  CHECK(sum[Measure::temporary_bytes] == 100);
  CHECK(sum[Measure::short_lived_blocks] == 2);
  CHECK(sum[Measure::other_thread_blocks] == 1);
  CHECK(sum[Measure::allocated_blocks] == 3);
  REQUIRE(model.leaked().size() == 1);
  CHECK(model.leaked()[0].amount.bytes == 100);
}

}  // namespace cmt::report
