// Checks each repair of the mender, and that its output is consistent for random logs and orders.

#include "libcmt/heap/mender.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cmt/text.h"

using namespace cmt;
using heap::Mender;

namespace {

Event makes(std::uint64_t address, std::uint64_t size = 8, std::uint32_t thread = 0) {
  return {.kind = Kind::malloc, .thread = thread, .size = size, .address = address};
}
Event ends(std::uint64_t address, std::uint32_t thread = 0) {
  return {.kind = Kind::free, .thread = thread, .old_address = address};
}
Event grows(std::uint64_t from, std::uint64_t to, std::uint64_t size, std::uint32_t thread = 0) {
  return {.kind = Kind::realloc, .thread = thread, .size = size, .address = to, .old_address = from};
}

/// The mender's output for a log: lines, each with its repair if it was mended.
std::vector<std::string> mended(const std::vector<Event>& log, bool names_only = false) {
  std::vector<std::string> out;
  Mender mender;
  if (names_only) mender.leave_out_addresses();
  const auto take = [&] {
    for (const auto& mended : mender.take_mended()) {
      std::string line = mended.is_dropped ? "-" : to_line(mended.event);
      if (mended.repair) line += " # " + std::to_string(mended.line) + " " + std::string(name(*mended.repair));
      out.push_back(line);
    }
  };
  std::uint64_t number = 0;
  for (Event event : log) {
    if (cmt::LiveBlock given; mender.mend(event, given, ++number)) {
      out.push_back(to_line(event));
    } else {
      take();
    }
  }
  mender.finish();
  take();
  return out;
}

using Lines = std::vector<std::string>;

/// The true history of four threads, each with its own blocks. An address that is given back is soon handed out again,
/// mostly to another thread.
std::vector<Event> happened(unsigned seed, int count) {
  struct Block {
    std::uint64_t address;
    std::uint32_t thread;
  };
  std::mt19937 random(seed);
  std::vector<Event> all;
  std::vector<Block> live;
  std::vector<std::uint64_t> unused;
  for (std::uint64_t i = 64; i > 0; --i) unused.push_back(16 * i);
  while (count-- > 0) {
    const bool releases = !live.empty() && (unused.empty() || random() % 2 == 0);
    const bool allocates = !unused.empty() && (!releases || random() % 6 == 0);
    Block given{0, static_cast<std::uint32_t>(random() % 4)}, made{0, given.thread};
    if (allocates) {
      made.address = unused.back();
      unused.pop_back();
    }
    if (releases) {
      std::swap(live[random() % live.size()], live.back());
      given = live.back();
      live.pop_back();
      unused.push_back(given.address);
    }
    made.thread = given.thread;
    if (allocates) live.push_back(made);
    if (!allocates) all.push_back(ends(given.address, given.thread));
    if (allocates && releases) all.push_back(grows(given.address, made.address, 9, made.thread));
    if (allocates && !releases) all.push_back(makes(made.address, 8, made.thread));
  }
  return all;
}

/// The history as a log has it if a thread can be preempted between a release and its record. A thread's own records
/// keep their order.
std::vector<Event> logged_late(const std::vector<Event>& all, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<std::size_t, Event>> log;
  std::array<std::size_t, 4> last{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t late = all[i].old_address != 0 && random() % 50 == 0 ? random() % 50 : 0;
    std::size_t& when = last[all[i].thread];
    when = std::max(when, i + late);
    log.emplace_back(when, all[i]);
  }
  std::stable_sort(log.begin(), log.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Event> events;
  for (const auto& [when, event] : log) events.push_back(event);
  return events;
}

}  // namespace

TEST_CASE("mender: a consistent log gets its tags and nothing else") {
  CHECK(mended({makes(0x10), makes(0x20, 0), grows(0x10, 0x10, 9), ends(0x20), ends(0), makes(0), grows(0x10, 0, 99),
                grows(0x10, 0, 0)}) == Lines{"malloc(8) = 10<1>", "malloc(0) = 20<2>", "realloc(10<1>, 9) = 10<3>",
                                             "free(20<2>)", "free(0)", "malloc(8) = 0", "realloc(10<3>, 99) = 0",
                                             "realloc(10<3>, 0) = 0"});
}

TEST_CASE("mender: an unmatched free is dropped") {
  CHECK(mended({ends(0x10), makes(0x10), ends(0x10), ends(0x10)}) ==
        Lines{"- # 1 unmatched_free", "malloc(8) = 10<1>", "free(10<1>)", "- # 4 unmatched_free"});
}

TEST_CASE("mender: an unmatched realloc is taken as an allocation") {
  Event array = grows(0x40, 0x50, 6);
  array.kind = Kind::reallocarray;
  array.count = 2;
  CHECK(mended({grows(0x10, 0x20, 5), array}) ==
        Lines{"malloc(5) = 20<1> # 1 unmatched_realloc", "calloc(2, 6) = 50<2> # 2 unmatched_realloc"});
}

TEST_CASE("mender: a block handed out twice waits for its free, and the two are swapped") {
  CHECK(mended({makes(0x10), makes(0x10, 9, 1), makes(0x20), ends(0x10), ends(0x10, 1), ends(0x20)}) ==
        Lines{"malloc(8) = 10<1>", "malloc(8) = 20<2>", "free(10<1>)", "malloc(9) = 10<3> thread=1 # 2 order_race",
              "free(10<3>) thread=1", "free(20<2>)"});
}

TEST_CASE("mender: the release of a realloc is a free that is waited for") {
  CHECK(mended({makes(0x10), makes(0x30), makes(0x10, 9, 1), ends(0x30, 2), grows(0x10, 0x30, 99), ends(0x10, 1)}) ==
        Lines{"malloc(8) = 10<1>", "malloc(8) = 30<2>", "free(30<2>) thread=2", "realloc(10<1>, 99) = 30<3>",
              "malloc(9) = 10<4> thread=1 # 3 order_race", "free(10<4>) thread=1"});
}

TEST_CASE("mender: an allocation can wait for one that waits itself") {
  CHECK(mended({makes(0x10), makes(0x30), grows(0x30, 0x10, 9, 1), makes(0x30, 7, 2), ends(0x10)}) ==
        Lines{"malloc(8) = 10<1>", "malloc(8) = 30<2>", "free(10<1>)",
              "realloc(30<2>, 9) = 10<3> thread=1 # 3 order_race", "malloc(7) = 30<4> thread=2 # 4 order_race"});
}

TEST_CASE("mender: a block handed out twice whose free never comes is ended first") {
  CHECK(mended({makes(0x10), makes(0x10, 9)}) ==
        Lines{"malloc(8) = 10<1>", "free(10<1>) # 2 double_allocation", "malloc(9) = 10<2>"});
}

TEST_CASE(
    "mender: a free by the thread that was handed the block, or the only one before the next, is not the lost one") {
  const Lines one_thread = mended({makes(0x10), makes(0x10, 9, 1), ends(0x10, 1), makes(0x10, 7)});
  CHECK(one_thread == Lines{"malloc(8) = 10<1>", "free(10<1>) thread=1 # 2 double_allocation",
                            "malloc(9) = 10<2> thread=1", "free(10<2>) thread=1", "malloc(7) = 10<3>"});
  const Lines next = mended({makes(0x10), makes(0x10, 9), ends(0x10), makes(0x10, 7), ends(0x10)});
  CHECK(next == Lines{"malloc(8) = 10<1>", "free(10<1>) # 2 double_allocation", "malloc(9) = 10<2>", "free(10<2>)",
                      "malloc(7) = 10<3>", "free(10<3>)"});
}

TEST_CASE("mender: a free that comes later than an order race lasts is not waited for") {
  std::vector<Event> log{makes(0x10), makes(0x10, 9, 1)};
  for (std::size_t i = 0; i < Mender::race_events; ++i) log.push_back(ends(0));
  log.push_back(ends(0x10));
  CHECK(mended(log)[1] == "free(10<1>) thread=1 # 2 double_allocation");
  log.erase(log.begin() + 2);
  CHECK(mended(log)[Mender::race_events + 1] == "malloc(9) = 10<2> thread=1 # 2 order_race");
  log = {makes(0x10), makes(0x10, 9, 1), ends(0x10)};
  log[1].time_ns = 5;
  log[2].time_ns = 5 + Mender::race_ns;
  CHECK(mended(log)[2] == "malloc(9) = 10<2> thread=1 time=1000005 # 2 order_race");
  ++log[2].time_ns;
  CHECK(mended(log)[1] == "free(10<1>) thread=1 time=5 # 2 double_allocation");
}

TEST_CASE("mender: in a log of one thread a free was lost, whatever follows") {
  CHECK(mended({makes(0x10), makes(0x10, 9), ends(0x10), ends(0x10)}) ==
        Lines{"malloc(8) = 10<1>", "free(10<1>) # 2 double_allocation", "malloc(9) = 10<2>", "free(10<2>)",
              "- # 4 unmatched_free"});
}

TEST_CASE("mender: blocks that an allocation lies on are ended first, or moved before it where their free is late") {
  CHECK(mended({makes(0x100, 64), makes(0x140, 64), makes(0x180, 64), makes(0x120, 64)}) ==
        Lines{"malloc(64) = 100<1>", "malloc(64) = 140<2>", "malloc(64) = 180<3>", "free(100<1>) # 4 overlap",
              "free(140<2>) # 4 overlap", "malloc(64) = 120<4>"});
  CHECK(mended({makes(0x100, 64), makes(0x120, 8, 1), ends(0x100)}) ==
        Lines{"malloc(64) = 100<1>", "free(100<1>)", "malloc(8) = 120<2> thread=1 # 2 order_race"});
  CHECK(
      mended({makes(0x100, 64), makes(0x140, 64), grows(0x100, 0x100, 65)}) ==
      Lines{"malloc(64) = 100<1>", "malloc(64) = 140<2>", "free(140<2>) # 3 overlap", "realloc(100<1>, 65) = 100<3>"});
}

TEST_CASE("mender: time does not go back") {
  std::vector<Event> log{makes(0x10), makes(0x20), ends(0x10), ends(0x20)};
  for (std::size_t i = 0; i < log.size(); ++i) log[i].time_ns = 50 + (i * 30) % 40;
  CHECK(mended(log) == Lines{"malloc(8) = 10<1> time=50", "malloc(8) = 20<2> time=80",
                             "free(10<1>) time=80 # 3 time_back", "free(20<2>) time=80 # 4 time_back"});
}

TEST_CASE("mender: in a trace with tags, events that contradict them are dropped, and lost frees put in") {
  const auto made = [](std::uint64_t address, Tag tag) { return Event{.size = 8, .tag = tag, .address = address}; };
  const auto ended = [](std::uint64_t address, Tag tag) {
    return Event{.kind = Kind::free, .old_tag = tag, .old_address = address};
  };
  CHECK(mended({ended(0x90, 3), made(0x10, 5), made(0x10, 5), made(0x20, 4), made(0x14, 7), ended(0x10, 5),
                ended(0x18, 7), ended(0x14, 7), ended(0x14, 7)}) ==
        Lines{"free(90<3>)", "malloc(8) = 10<5>", "- # 3 contradiction", "- # 4 contradiction",
              "free(10<5>) # 5 overlap", "malloc(8) = 14<7>", "- # 6 contradiction", "free(14<7>) # 7 other_address",
              "- # 8 contradiction", "- # 9 contradiction"});
  CHECK(mended({made(0x10, 1), made(0, 2), ended(0, 1), ended(0x30, 2), ended(0, 2), made(0x10, 3), ended(0, 3)}) ==
        Lines{"malloc(8) = 10<1>", "malloc(8) = <2>", "free(<1>)", "free(30<2>)", "- # 5 contradiction",
              "malloc(8) = 10<3>", "free(<3>)"});
  const std::string last = "<18446744073709551615>";
  CHECK(mended({made(0x10, ~Tag{0}), makes(0x20), grows(0x10, 0x30, 9), ends(0x14), ends(0x10)}) ==
        Lines{"malloc(8) = 10" + last, "- # 2 contradiction", "- # 3 contradiction", "- # 4 unmatched_free",
              "free(10" + last + ")"});
}

TEST_CASE("mender: a free from inside a block ends it and begins its head") {
  CHECK(mended({makes(0x100, 64), makes(0x200, 0), ends(0x120), ends(0x120), ends(0x110), ends(0x201), ends(0x100)}) ==
        Lines{"malloc(64) = 100<1>", "malloc(0) = 200<2>", "free(100<1>) # 3 misfree", "malloc(32) = 100<3>",
              "- # 4 unmatched_free", "free(100<3>) # 5 misfree", "malloc(16) = 100<4>", "- # 6 unmatched_free",
              "free(100<4>)"});
}

TEST_CASE("mender: names that are no addresses tell blocks apart and are left out") {
  CHECK(mended({makes(1, 64), grows(1, 1, 99), ends(2), makes(2), ends(1)}, true) ==
        Lines{"malloc(64) = <1>", "realloc(<1>, 99) = <2>", "- # 3 unmatched_free", "malloc(8) = <3>", "free(<2>)"});
}

TEST_CASE("mender: a label survives the wait of an allocation") {
  std::string label = "phase 2";
  Mender mender;
  Event first = makes(0x10), second = makes(0x10), mark{.kind = Kind::mark, .label = label};
  cmt::LiveBlock given;
  CHECK(mender.mend(first, given, 1));
  CHECK(!mender.mend(second, given, 2));
  CHECK(!mender.mend(mark, given, 3));
  CHECK(mender.take_mended().empty());
  label = "another";
  mender.finish();
  CHECK(mender.take_mended().back().label == "phase 2");
}

TEST_CASE("mender: of releases that are logged late, in any mixture, 19 in 20 are put right") {
  std::size_t races = 0, others = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    for (const std::string& line : mended(logged_late(happened(seed, 1000), seed))) {
      if (line.ends_with("order_race")) ++races;
      if (line.ends_with("unmatched_free") || line.ends_with("double_allocation")) ++others;
    }
  }
  CHECK(races > 1000);
  CHECK(others * 20 < races);
}

TEST_CASE("mender: two reallocs that claim each other's block do not wait for ever") {
  const Lines all = mended({makes(0x10), makes(0x20), grows(0x10, 0x20, 5, 1), grows(0x20, 0x10, 6, 2)});
  CHECK(all.size() == 5);
  CHECK(std::count_if(all.begin(), all.end(), [](const auto& line) { return line.ends_with("double_allocation"); }) ==
        1);
}

TEST_CASE("mender: a log in which everything goes wrong keeps every allocation") {
  std::vector<Event> log;
  std::uint64_t seed = 1, made = 0;
  for (int i = 0; i < 20000; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t address = 0x10 * (1 + (seed >> 33) % 5), thread = (seed >> 40) % 3;
    const auto of = static_cast<std::uint32_t>(thread);
    if ((seed >> 50) % 3 == 0) log.push_back(ends(address, of));
    if ((seed >> 50) % 3 == 1) log.push_back(makes(address, 40, of));
    if ((seed >> 50) % 3 == 2) log.push_back(grows(address, 0x10 * (1 + (seed >> 36) % 5), 20, of));
    made += (seed >> 50) % 3 != 0;
  }
  std::uint64_t allocations = 0, heads = 0;
  for (const std::string& line : mended(log)) {
    if (line.starts_with("malloc") || line.starts_with("realloc")) ++allocations;
    if (line.ends_with("misfree")) ++heads;
  }
  CHECK(allocations == made + heads);
}
