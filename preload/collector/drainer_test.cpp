#include "preload/collector/drainer.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>

using namespace cmt::collector;

namespace {

constexpr std::uint32_t rings = 2, slots = 4096;

/// The memory of a program with two rings of which nothing is read.
class Program {
 public:
  Program() : memory_(make(), Memory::Use::together, "rings") {
    for (std::uint32_t i = 0; i < rings; ++i) {
      Ring& ring = memory_.ring(i);
      ring.slots_at = rings_control_bytes(rings) + std::uint64_t{i} * slots * slot_bytes;
      ring.slots = slots;
      ring.limit = slots;
      ring.owner = 1 + i;
    }
  }

  Memory& memory() { return memory_; }

  void record(std::uint32_t number, std::uint64_t count) {
    Ring& ring = memory_.ring(number);
    auto* places = reinterpret_cast<Slot*>(reinterpret_cast<char*>(&memory_.control()) + ring.slots_at);
    for (; count != 0; --count, ++ring.reserved) {
      const std::uint64_t lap = (ring.reserved & slots) != 0 ? slot_parity : 0;
      places[ring.reserved & (slots - 1)].head = slot_valid | lap | std::uint64_t{16} << slot_address_shift;
    }
  }

  /// Places that are never published.
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

  Memory memory_;
};

/// What a pass has put: how many records of each ring, up to a cut.
std::optional<std::uint64_t> records_up_to_cut(Backlog& backlog) {
  std::uint64_t records = 0;
  while (const auto parcel = backlog.take(0)) {
    if (parcel->type == Parcel::Type::cut) return records;
    records += parcel->records.count;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("drainer: before a cut there is all that was recorded, also where the first ring alone fills the backlog") {
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

TEST_CASE("drainer: what is asked for at the end is read though there is no room") {
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

TEST_CASE("drainer: at the end what lies behind a place that was never published is read, and no more") {
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
  std::uint64_t behind = 0;
  while (const auto records = records_up_to_cut(backlog)) behind += *records;
  CHECK(behind == 10 + 2 + 5 + 1 + 3);
}
