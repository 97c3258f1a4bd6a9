// Checks passes of the drainer on rings in memory: limits, memory of quiet and crowded rings, and the pace.

#include "preload/collector/drain/drainer.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <optional>

using namespace cmt::collector;

namespace {

constexpr std::uint32_t rings = 2, slots = 4096;

/// The memory of a program with two rings that nobody has read.
class Program {
 public:
  Program() : memory_(make(), RingMemory::Access::shared, "rings") {
    for (std::uint32_t i = 0; i < rings; ++i) {
      Ring& ring = memory_.ring(i);
      ring.slots_at = rings_control_bytes(rings) + std::uint64_t{i} * slots * slot_bytes;
      ring.slots = slots;
      ring.limit = slots;
      ring.owner = 1 + i;
    }
  }

  RingMemory& memory() { return memory_; }

  void record(std::uint32_t number, std::uint64_t count) {
    Ring& ring = memory_.ring(number);
    auto* records = reinterpret_cast<Slot*>(reinterpret_cast<char*>(&memory_.control()) + ring.slots_at);
    for (; count != 0; --count, ++ring.reserved) {
      const std::uint64_t lap = (ring.reserved & slots) != 0 ? slot_parity : 0;
      records[ring.reserved & (slots - 1)].head = slot_valid | lap | std::uint64_t{16} << slot_address_shift;
    }
  }

  /// Slots that are never published.
  void reserve(std::uint32_t number, std::uint64_t count) { memory_.ring(number).reserved += count; }

 private:
  static int make() {
    const int fd = ::memfd_create("rings", MFD_CLOEXEC);
    REQUIRE(::ftruncate(fd, static_cast<off_t>(rings_control_bytes(rings) + rings * slots * slot_bytes)) == 0);
    void* at = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    auto* control = static_cast<Control*>(at);
    std::memcpy(control->magic, ring_magic, sizeof control->magic);
    control->rings_limit = control->rings_used = rings;
    control->outputs = 1;
    ::munmap(at, sizeof(Control));
    return fd;
  }

  RingMemory memory_;
};

/// How many records a pass has put before its cut.
std::optional<std::uint64_t> records_up_to_cut(Backlog& backlog) {
  std::uint64_t records = 0;
  while (const auto item = backlog.next_item()) {
    if (item->type == WorkItem::Type::cut) return records;
    records += item->records.count;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("drainer: all rings are read before a cut, also where the first ring alone fills the backlog") {
  Program program;
  Backlog backlog("/tmp", 1, 0);
  Drainer drainer(program.memory(), backlog);
  program.record(0, 100);
  program.record(1, 50);
  CHECK(drainer.pass() == std::size_t{150});
  program.record(0, 10);
  program.record(1, 20);
  CHECK(drainer.pass() == std::nullopt);
  CHECK(records_up_to_cut(backlog) == std::uint64_t{150});
  CHECK(records_up_to_cut(backlog) == std::nullopt);
  CHECK(drainer.pass() == std::size_t{30});
  CHECK(records_up_to_cut(backlog) == std::uint64_t{30});
}

TEST_CASE("drainer: a pass for a request reads the rings although there is no room") {
  Program program;
  Backlog backlog("/tmp", 1, 0);
  Drainer drainer(program.memory(), backlog);
  program.record(0, 100);
  CHECK(drainer.pass() == std::size_t{100});
  program.record(1, 5);
  CHECK(drainer.pass(true) == std::size_t{5});
  CHECK(program.memory().ring(1).tail == 5);
  CHECK(records_up_to_cut(backlog) == std::uint64_t{100});
  CHECK(records_up_to_cut(backlog) == std::uint64_t{5});
}

TEST_CASE("drainer: at the end records after a slot that was never published are read, and no more") {
  Program program;
  Backlog backlog("/tmp", 1 << 20, 0);
  Drainer drainer(program.memory(), backlog);
  program.record(0, slots - 1);
  CHECK(drainer.pass() == slots - std::size_t{1});
  CHECK_FALSE(drainer.skip_unpublished());
  program.record(0, 10);
  program.reserve(0, 2);
  program.record(0, 5);
  program.reserve(0, 1);
  program.record(0, 3);
  program.reserve(0, 4);
  CHECK(drainer.pass() == std::size_t{10});
  CHECK(drainer.pass() == std::size_t{0});
  CHECK(drainer.skip_unpublished());
  CHECK(drainer.pass() == std::size_t{5});
  CHECK(drainer.skip_unpublished());
  CHECK(drainer.pass() == std::size_t{3});
  CHECK_FALSE(drainer.skip_unpublished());
  CHECK(records_up_to_cut(backlog) == std::uint64_t{slots - 1});
  std::uint64_t after = 0;
  while (const auto records = records_up_to_cut(backlog)) after += *records;
  CHECK(after == 10 + 2 + 5 + 1 + 3);
}

TEST_CASE("pace: a ring that fills in 400 us is read every 100 us, less the time of the pass") {
  DrainPace pace;
  std::uint64_t now = 1'000'000'000;
  pace.begin_pass(now);
  for (int i = 0; i < 40; ++i) {
    pace.begin_pass(now += 100'000);
    pace.note_ring(1, 100);
    pace.note_ring(25, 100);
    pace.end_pass();
  }
  CHECK(*pace.sleep_ns(now) == 100'000);
  CHECK(*pace.sleep_ns(now + 30'000) == 70'000);
  CHECK(*pace.sleep_ns(now + 500'000) == 10'000);
}

TEST_CASE("pace: a pass that comes late, and finds a ring full, does not make the next one late") {
  DrainPace pace;
  std::uint64_t now = 1'000'000'000;
  pace.begin_pass(now);
  pace.begin_pass(now += 100'000);
  pace.note_ring(25, 100);
  pace.end_pass();
  pace.begin_pass(now += 5'000'000);
  pace.note_ring(100, 100);
  pace.end_pass();
  CHECK(*pace.sleep_ns(now) == 112'500);
}

TEST_CASE("pace: where rings fill slowly the bell is early enough") {
  DrainPace pace;
  std::uint64_t now = 1'000'000'000;
  CHECK_FALSE(pace.sleep_ns(now));
  pace.begin_pass(now);
  pace.end_pass();
  CHECK_FALSE(pace.sleep_ns(now));
  for (int i = 0; i < 10; ++i) {
    pace.begin_pass(now += 100'000'000);
    pace.note_ring(50, 100);
    pace.end_pass();
  }
  CHECK_FALSE(pace.sleep_ns(now));
}

TEST_CASE("drainer: a thread that left a busy processor may come back, and does not move where all are busy") {
  cpu_set_t before, after, all;
  CPU_ZERO(&all);
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  const int here = ::sched_getcpu();
  cpu_set_t busy;
  CPU_ZERO(&busy);
  CPU_SET(static_cast<std::size_t>(here), &busy);
  for (const cpu_set_t& each : {busy, all}) {
    leave_busy_processors(before, each, here, 0);
    REQUIRE(::sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
  }
}
