// Checks the summary of lifetimes on small traces: fates, peaks, reallocation chains and leaks.
#include "lifetimes/summarise.h"

#include <doctest/doctest.h>

using cmt::Event;
using cmt::Kind;
using cmt::Tag;
using cmt::command::Complaints;
using cmt::heap::Clock;
using namespace cmt::lifetimes;

namespace {

Event malloc(std::uint64_t size, Tag tag, std::uint32_t thread = 0) {
  Event event;
  event.size = size;
  event.tag = tag;
  event.thread = thread;
  return event;
}

Event free(Tag tag, std::uint32_t thread = 0) {
  Event event;
  event.kind = Kind::free;
  event.old_tag = tag;
  event.thread = thread;
  return event;
}

Event realloc(Tag old_tag, std::uint64_t size, Tag tag) {
  Event event = malloc(size, tag);
  event.kind = Kind::realloc;
  event.old_tag = old_tag;
  return event;
}

Summary summary_of(std::initializer_list<Event> events, Clock::Unit clock = Clock::Unit::events) {
  Complaints complaints(false, [](const std::string&) {});
  Summariser summariser("a/b.trace", clock, complaints);
  for (const Event& event : events) summariser.count_event(event);
  return summariser.finish(false);
}

const SizeSummary& of_size(const Summary& summary, std::uint64_t size) {
  return summary.sizes[SizeClasses::index(size)];
}

}  // namespace

TEST_CASE("summary: a block freed by its thread's next event is temporary, whatever others do meanwhile") {
  const Summary summary = summary_of({malloc(8, 1, 0), malloc(16, 2, 1), free(1, 0), malloc(8, 3, 1), free(2, 1)});
  CHECK(of_size(summary, 8).temporary == 1);
  CHECK(of_size(summary, 16).temporary == 0);
  CHECK(of_size(summary, 16).other_thread == 0);
}

TEST_CASE("summary: a block freed by another thread is counted, and is not temporary") {
  const Summary summary = summary_of({malloc(8, 1, 1), free(1, 2)});
  CHECK(of_size(summary, 8).other_thread == 1);
  CHECK(of_size(summary, 8).temporary == 0);
}

TEST_CASE("summary: the peak is the first moment with the most bytes, and knows of which sizes they were") {
  const Summary summary = summary_of({malloc(8, 1), malloc(100, 2), free(1), malloc(8, 3), free(2), malloc(50, 4)});
  const Peak& peak = summary.inputs[0].peak;
  CHECK(peak.live == Amount{{108, 2}});
  CHECK(peak.event == 2);
  CHECK(peak.sizes[SizeClasses::index(8)] == Amount{{8, 1}});
  CHECK(peak.sizes[SizeClasses::index(100)] == Amount{{100, 1}});
  CHECK(peak.sizes[SizeClasses::index(50)] == Amount{});
}

TEST_CASE("summary: reallocs that move a block are counted, with the bytes that they copy at most") {
  const auto moved = [](Event event, std::uint64_t old_address, std::uint64_t address) {
    event.old_address = old_address;
    event.address = address;
    return event;
  };
  const Summary summary =
      summary_of({malloc(100, 1), moved(realloc(1, 200, 2), 16, 32), moved(realloc(2, 300, 3), 32, 32),
                  moved(realloc(3, 50, 4), 32, 64), moved(realloc(9, 50, 5), 16, 64)});
  CHECK(summary.moved == 2);
  CHECK(summary.moved_bytes == 150);
  Summary both = summary_of({malloc(8, 1), realloc(1, 16, 2)});
  CHECK(both.moved == cmt::unknown);
  both.merge(summary);
  CHECK(both.moved == 2);
}

TEST_CASE("summary: a chain of reallocations is counted when its last block is freed or left") {
  const Summary summary = summary_of({malloc(8, 1), realloc(1, 16, 2), realloc(2, 32, 3), malloc(8, 4),
                                      realloc(4, 16, 5), free(3), malloc(8, 6), free(6)});
  CHECK(summary.chains[2] == 1);
  CHECK(summary.chains[1] == 1);
  CHECK(summary.chain_max == 2);
  CHECK(of_size(summary, 16).leaked == Amount{{16, 1}});
}

TEST_CASE("summary: quantiles are the ends of classes, and never above the longest lifetime") {
  Summary summary = summary_of({malloc(8, 1), free(1), malloc(8, 2), free(2), malloc(8, 3), malloc(8, 4), free(3)});
  CHECK(of_size(summary, 8).lifetime_quantile(0.5) == 1);
  CHECK(of_size(summary, 8).lifetime_quantile(0.99) == 2);
  CHECK_FALSE(of_size(summary, 16).lifetime_quantile(0.5));

  // 90 blocks live 1,025 events, and a block lives longer: the text and the manual promise at most 12.5 % too much.
  SizeSummary size;
  size.ended = 91;
  size.lifetimes[AgeClasses::index(1025)] = 90;
  size.lifetimes[AgeClasses::index(5000)] = 1;
  size.lifetime_max = 5000;
  CHECK(size.lifetime_quantile(0.5) == 1151);
  CHECK(size.lifetime_quantile(1) == 5000);
  for (std::size_t i = 0; i + 1 < AgeClasses::count; ++i)
    CHECK(AgeClasses::high(i) - AgeClasses::low(i) <= AgeClasses::low(i) / 8);
}

TEST_CASE("summary: by the clock of bytes a lifetime is what was allocated meanwhile") {
  const Summary summary = summary_of({malloc(8, 1), malloc(1000, 2), free(1)}, Clock::Unit::bytes);
  CHECK(of_size(summary, 8).lifetime_max == 1000);
}

TEST_CASE("summary: a merged one is the sum, and keeps the peaks apart") {
  Summary sum = summary_of({malloc(8, 1), free(1), malloc(100, 2)});
  sum.merge(summary_of({malloc(8, 1), malloc(8, 2), free(1)}));
  CHECK(of_size(sum, 8).allocated == Amount{{24, 3}});
  CHECK(of_size(sum, 8).leaked == Amount{{8, 1}});
  CHECK(sum.total().ended == 2);
  REQUIRE(sum.inputs.size() == 2);
  CHECK(sum.inputs[0].name == "b.trace");
  CHECK(sum.inputs[0].peak.live.bytes == 100);
  CHECK(sum.inputs[1].peak.live.bytes == 16);
}

TEST_CASE("summary: blocks from before the start, and those ended twice, have no lifetime") {
  const Summary summary = summary_of({free(3), malloc(8, 5), free(5), free(5)});
  CHECK(summary.unknown_ends == 1);
  CHECK(summary.total().ended == 1);
  CHECK(summary.inputs[0].defects == 1);
}
