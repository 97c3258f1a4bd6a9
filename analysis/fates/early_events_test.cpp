// Checks the facts about blocks before a late start against their definition.
#include "analysis/fates/early_events.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cmt/writer.h"

namespace cmt::analysis {
namespace {

/// A .cmt in memory with 16 events in each block of the stream: three threads make, touch and free blocks.
class Trace {
 public:
  Trace() : fd_(memfd_create("early", 0)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    std::mt19937 random(5);
    WriteOptions options;
    options.block_events = 16;
    Header header;
    header.has_times = true;
    Writer writer(fd_, header, options);
    Tag last = 9;
    std::vector<Tag> live;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      Event event{.thread = static_cast<std::uint32_t>(random() % 3), .time_ns = 100 * i};
      if (const auto choice = random() % 10; !live.empty() && choice < 4) {
        Tag& freed = live[random() % live.size()];
        event.kind = Kind::free;
        event.old_tag = freed;
        freed = live.back();
        live.pop_back();
      } else if (!live.empty() && choice == 4) {
        event.kind = Kind::touch;
        event.old_tag = live.front();
        event.count = 0;
        event.alignment = 4096;
      } else {
        event.size = 1 + random() % 1000;
        event.tag = ++last;
        live.push_back(last);
      }
      writer.add(event);
      events_.push_back(event);
    }
    writer.finish();
  }
  ~Trace() { close(fd_); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::string& path() const { return path_; }

  /// The facts that complete() has to find for all blocks that are live before the event `end`, by definition.
  std::vector<EarlyEnd> ends(std::uint64_t end, heap::Clock::Unit unit) const {
    std::map<Tag, EarlyEnd> live;
    for (std::uint64_t i = 0; i < end; ++i) {
      const Event& event = events_[i];
      if (event.kind == Kind::touch) continue;
      for (auto& [tag, block] : live) block.is_temporary &= block.thread != event.thread;
      live.erase(event.old_tag);
      if (event.tag == 0) continue;
      live[event.tag] = {.tag = event.tag,
                         .born = unit == heap::Clock::Unit::time ? event.time_ns : i + 1,
                         .thread = event.thread,
                         .is_temporary = true};
    }
    std::vector<EarlyEnd> ends;
    for (const auto& [tag, block] : live) ends.push_back(block);
    return ends;
  }

 private:
  int fd_;
  std::string path_;
  std::vector<Event> events_;
};

/// Runs complete() on these blocks, in another order and without the facts that a late start does not know.
std::vector<EarlyEnd> completed(const Trace& trace, std::vector<EarlyEnd> ends, std::uint64_t end,
                                heap::Clock::Unit unit) {
  std::reverse(ends.begin(), ends.end());
  for (EarlyEnd& each : ends) {
    each.born = unknown;
    each.is_temporary = true;
  }
  EarlyEvents(trace.path(), end, unit).complete(ends);
  return ends;
}

}  // namespace

TEST_CASE(
    "early events: blocks that are live at a late start get the moment of their birth, and whether they are "
    "temporary") {
  const Trace trace;
  for (const heap::Clock::Unit unit : {heap::Clock::Unit::events, heap::Clock::Unit::time}) {
    for (const std::uint64_t end : {16u, 32u, 1600u, 2992u}) {
      CAPTURE(end);
      std::vector<EarlyEnd> wanted = trace.ends(end, unit);
      REQUIRE(std::any_of(wanted.begin(), wanted.end(), [](const EarlyEnd& each) { return each.is_temporary; }));
      for (int some = 0; some < 2; ++some) {
        const std::vector<EarlyEnd> found = completed(trace, wanted, end, unit);
        REQUIRE(found.size() == wanted.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].tag == wanted[i].tag);
          CHECK(found[i].born == wanted[i].born);
          CHECK(found[i].is_temporary == wanted[i].is_temporary);
        }
        // Second round: only every third of them, so that most blocks of the stream have none to find.
        std::size_t i = 0;
        std::erase_if(wanted, [&i](const EarlyEnd&) { return i++ % 3 != 0; });
      }
    }
  }
}

TEST_CASE("early events: the first tag and the last time are those of the events before") {
  const Trace trace;
  const EarlyEvents events(trace.path(), 1600, heap::Clock::Unit::events);
  CHECK(events.find_first_tag() == 10);
  CHECK(events.last_time_ns() == 159'900);
}

TEST_CASE("early events: a block that no event before the late start has made is refused") {
  const Trace trace;
  std::vector<EarlyEnd> ends{{.tag = 5}};
  CHECK_THROWS_AS(EarlyEvents(trace.path(), 1600, heap::Clock::Unit::events).complete(ends), FormatError);
  ends = {{.tag = 1'000'000}};
  CHECK_THROWS_AS(EarlyEvents(trace.path(), 1600, heap::Clock::Unit::events).complete(ends), FormatError);
}

}  // namespace cmt::analysis
