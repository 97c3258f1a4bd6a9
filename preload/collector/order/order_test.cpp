// Checks the order of events against true histories of several threads, with signal handlers, reallocs, wrong stamps
// and lost records.

#include "preload/collector/order/order.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cmt/text.h"

using namespace cmt;
using namespace cmt::collector;

namespace {

constexpr std::uint32_t malloc_kind = 0, free_kind = 1, realloc_kind = 3, pool_malloc_kind = 34, pool_free_kind = 35;
constexpr std::uint64_t arenas = std::uint64_t{pool_python_arenas} << slot_alignment_shift;

/// Records as threads make them, and the lines of the trace that they become.
class Threads {
 public:
  explicit Threads(EarlierBlocks earlier = {9}, const Control* control = nullptr)
      : order(
            earlier,
            [this](EventBatch& batch) {
              batch.convert_times([](std::uint64_t) { return unknown; });
              batch.for_each([this](const BookedEvent& booked) { lines += to_line(booked.event) + "; "; });
              return batch.size() + 2;  // batches of many sizes
            },
            nullptr, 0, control) {}

  void record(std::uint32_t ring, std::uint32_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t stamp,
              std::uint64_t flags = 0) {
    const Slot slot{address << slot_address_shift | flags | kind, size << 32 | (stamp & 0xffffffff)};
    Packer packer;
    if (stamp >> 32 != stamps_high_[ring]) packer.append(record_stamp_high, stamps_high_[ring] = stamp >> 32);
    packer.append(slot.head, slot.body);
    order.append_records(ring, packer.finish());
  }

  std::string lines;
  EventOrder order;

 private:
  std::array<std::uint64_t, 4> stamps_high_{};  // by ring
};

/// Four threads that hand blocks to each other, from a stamp on, merged now and then. Stamps of allocations are early,
/// by less than the lifetime of a block.
std::string exchange(std::uint64_t begin, std::uint64_t& inversions) {
  constexpr std::uint64_t early = 200;
  struct Block {
    std::uint64_t address, since;
  };
  Threads t;
  std::mt19937 random(5);
  std::vector<Block> live;
  std::vector<std::uint64_t> ended;
  std::uint64_t now = begin, fresh = 0x1000;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    now += random() % 50;
    const std::uint32_t ring = random() % 4;
    if (live.size() > random() % 200) std::swap(live[random() % live.size()], live.back());
    if (live.size() > random() % 200 && live.back().since + early < now) {
      const std::uint64_t old = live.back().address;
      live.pop_back();
      ended.push_back(old);
      t.record(ring, free_kind, old, 0, now);
    } else {
      const bool again = !ended.empty() && random() % 4 != 0;
      live.push_back({again ? ended.back() : fresh += 64, now});
      if (again) ended.pop_back();
      t.record(ring, malloc_kind, live.back().address, i, now - random() % early);
    }
    if (i % 500 == 0) t.order.merge_until(now - stamp_slack);
  }
  t.order.merge_all();
  CHECK(t.order.repairs().total() == 0);
  inversions = t.order.inversions();
  return t.lines;
}

}  // namespace

TEST_CASE("order: events of two threads are merged by their stamps") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, malloc_kind, 0x300, 3, 30);
  t.record(1, malloc_kind, 0x200, 2, 20);
  t.order.merge_until(25);
  CHECK(t.lines == "malloc(1) = 100<10>; malloc(2) = 200<11>; ");
  t.order.merge_until(30);
  CHECK(t.lines == "malloc(1) = 100<10>; malloc(2) = 200<11>; malloc(3) = 300<12>; ");
}

TEST_CASE("order: an allocation whose stamp is too early waits for the free of its address") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, free_kind, 0x100, 0, 50);
  t.record(1, malloc_kind, 0x100, 2, 45);
  t.order.merge_until(9000);
  CHECK(t.lines == "malloc(1) = 100<10>; free(100<10>); malloc(2) = 100<11>; ");
  CHECK(t.order.inversions() == 1);
  CHECK(t.order.repairs().total() == 0);
}

TEST_CASE("order: a free whose stamp is too early waits for the allocation") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 50);
  t.record(1, free_kind, 0x100, 0, 45);
  t.order.merge_until(9000);
  CHECK(t.lines == "malloc(1) = 100<10>; free(100<10>); ");
}

TEST_CASE("order: blocks of pools have numbers of their own, also at the address of a block of malloc") {
  Threads t;
  t.record(0, pool_malloc_kind, 0x100, 1 << 18, 10, arenas);
  t.record(0, malloc_kind, 0x100, 1, 11);
  t.record(0, pool_malloc_kind, 0x100, 24, 12);
  t.record(0, pool_malloc_kind, 0x130, 48, 13);
  t.record(0, pool_free_kind, 0x100, 0, 14);
  t.record(0, free_kind, 0x100, 0, 15);
  t.record(0, pool_malloc_kind, 0x100, 0, 16);
  t.record(0, pool_free_kind, 0x100, 0, 17, arenas);
  t.order.merge_until(9000);
  CHECK(t.lines ==
        "pool_malloc(262144, \"python arenas\") = <1>; malloc(1) = 100<10>; pool_malloc(24, \"python\") = <2>; "
        "pool_malloc(48, \"python\") = <3>; pool_free(<2>, \"python\"); free(100<10>); "
        "pool_malloc(0, \"python\") = <4>; pool_free(<1>, \"python arenas\"); ");
  CHECK(t.order.repairs().total() == 0);
  CHECK(t.order.live_blocks().live_blocks() == 0);
}

TEST_CASE("order: the end of a block of malloc in the pool of Python is not an end of an unknown block") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 600, 10);
  t.record(0, pool_free_kind, 0x100, 0, 11);
  t.record(0, free_kind, 0x100, 0, 12);
  t.order.merge_until(13);  // nothing waits
  CHECK(t.lines == "malloc(600) = 100<10>; free(100<10>); ");
  CHECK(t.order.unseen_pool_blocks() == 0);
  CHECK(t.order.repairs().total() == 0);
}

TEST_CASE("order: events of pools wait for each other across rings, and ends of unknown blocks are dropped") {
  Threads t;
  t.record(0, pool_malloc_kind, 0x100, 1, 10);
  t.record(1, pool_malloc_kind, 0x100, 2, 45);  // early
  t.record(0, pool_free_kind, 0x100, 0, 50);
  t.record(2, pool_free_kind, 0x200, 0, 60);  // early
  t.record(0, pool_malloc_kind, 0x200, 3, 70);
  t.record(3, pool_free_kind, 0x300, 0, 80);
  t.order.merge_until(9000);
  CHECK(t.lines ==
        "pool_malloc(1, \"python\") = <1>; pool_free(<1>, \"python\"); pool_malloc(2, \"python\") = <2>; "
        "pool_malloc(3, \"python\") = <3>; pool_free(<3>, \"python\"); ");
  CHECK(t.order.inversions() == 2);
  CHECK(t.order.unseen_pool_blocks() == 1);
  CHECK(t.order.repairs().total() == 0);
  t.lines.clear();
  t.record(0, pool_malloc_kind, 0x100, 4, 10000);  // the end of the block that is there was lost
  t.record(0, pool_malloc_kind, 0x400, 5, 10001, std::uint64_t{9} << slot_alignment_shift);  // no such pool
  t.order.merge_all();
  CHECK(t.lines == "pool_free(<2>, \"python\"); pool_malloc(4, \"python\") = <4>; ");
  CHECK(t.order.repairs()[Repair::double_allocation] == 1);
  CHECK(t.order.replaced_pool_blocks() == 1);
  CHECK(t.order.repairs()[Repair::contradiction] == 1);
}

TEST_CASE("order: a program's pools have its names, and wait neither for each other nor for a realloc of malloc") {
  const auto control = std::make_unique<Control>();
  constexpr std::uint64_t first = std::uint64_t{pools_known} << slot_alignment_shift,
                          last = std::uint64_t{pools_max - 1} << slot_alignment_shift;
  std::memcpy(control->pools[pools_known], "a\xff\n", 3);
  std::memset(control->pools[pools_max - 1], 'z', pool_name_bytes);
  Threads t({9}, control.get());
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, record_realloc_begin, 0x100, 0, 20);
  t.record(1, pool_free_kind, 0x100, 0, 25, first);  // early
  t.record(2, pool_malloc_kind, 0x100, 7, 26, last);
  t.record(2, pool_malloc_kind, 0x100, 8, 30, first);
  t.record(0, realloc_kind, 0x500, 9, 9000, slot_has_old_block);
  t.order.merge_until(5000);
  CHECK(t.lines == "malloc(1) = 100<10>; pool_malloc(7, \"" + std::string(64, 'z') +
                       "\") = <1>; pool_malloc(8, \"a\uFFFD\\n\") = <2>; "
                       "pool_free(<2>, \"a\uFFFD\\n\"); ");
  CHECK(t.order.inversions() == 1);
  t.order.merge_all();
  CHECK(t.lines.ends_with("realloc(100<10>, 9) = 500<11>; "));
  CHECK(t.order.repairs().total() == 0);
}

TEST_CASE("order: no event overtakes one that waits, so a free finds its block after that") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, malloc_kind, 0x200, 1, 11);
  // Thread 1 waits for 0x200; after that it ends the first block at 0x100, which thread 2 makes anew and thread 3 ends.
  t.record(1, malloc_kind, 0x200, 2, 100);
  t.record(1, free_kind, 0x100, 0, 120);
  t.record(2, malloc_kind, 0x100, 3, 9000);
  t.record(3, free_kind, 0x100, 0, 9100);
  t.order.merge_until(9500);
  CHECK(t.lines.ends_with("free(200<11>); malloc(2) = 200<12>; free(100<10>); malloc(3) = 100<13>; free(100<13>); "));
}

TEST_CASE("order: the return of a realloc comes before events of other threads at its old address") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, record_realloc_begin, 0x100, 0, 20);
  t.record(0, realloc_kind, 0x200, 2, 5000, slot_has_old_block);
  t.record(1, malloc_kind, 0x100, 3, 30);
  t.record(1, free_kind, 0x100, 0, 40);
  t.order.merge_until(9000);
  CHECK(t.lines == "malloc(1) = 100<10>; realloc(100<10>, 2) = 200<11>; malloc(3) = 100<12>; free(100<12>); ");
}

TEST_CASE("order: the return of a realloc comes before allocations of memory that it has left") {
  for (const std::uint64_t moved : {0x900u, 0x100u}) {  // or shrunk
    Threads t;
    t.record(0, malloc_kind, 0x100, 0x200, 10);
    t.record(0, record_realloc_begin, 0x100, 0, 20);
    t.record(1, malloc_kind, 0x180, 0x20, 30);
    t.record(1, record_realloc_begin, 0x180, 0, 31);
    t.record(1, realloc_kind, 0x1a0, 0x20, 32, slot_has_old_block);
    t.order.merge_until(40);
    CHECK(t.lines == "malloc(512) = 100<10>; ");
    t.record(0, realloc_kind, moved, 0x40, 5000, slot_has_old_block);
    t.order.merge_until(9000);
    CHECK(t.lines.ends_with((moved == 0x100 ? "100<11>" : "900<11>") +
                            std::string("; malloc(32) = 180<12>; realloc(180<12>, 32) = 1a0<13>; ")));
    CHECK(t.order.repairs().total() == 0);
  }
}

TEST_CASE("order: an event that depends on a realloc waits until its return is read") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, record_realloc_begin, 0x100, 0, 20);
  t.record(1, malloc_kind, 0x100, 3, 30);
  t.order.merge_until(100'000);
  CHECK(t.lines == "malloc(1) = 100<10>; ");
  t.record(0, realloc_kind, 0x200, 2, 100'001, slot_has_old_block);
  t.order.merge_until(200'000);
  CHECK(t.lines == "malloc(1) = 100<10>; realloc(100<10>, 2) = 200<11>; malloc(3) = 100<12>; ");
}

TEST_CASE("order: no event of another thread overtakes those after one that waits for a realloc") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(1, malloc_kind, 0x300, 2, 11);
  t.record(0, record_realloc_begin, 0x100, 0, 20);
  t.record(1, malloc_kind, 0x100, 3, 40);
  t.record(1, free_kind, 0x300, 0, 41);
  t.record(1, malloc_kind, 0x300, 4, 42);
  t.record(2, free_kind, 0x300, 0, 60);  // ends the second block at 300
  t.order.merge_until(100'000);
  CHECK(t.lines == "malloc(1) = 100<10>; malloc(2) = 300<11>; ");
  t.record(0, realloc_kind, 0x200, 5, 100'001, slot_has_old_block);
  t.order.merge_all();
  CHECK(t.lines ==
        "malloc(1) = 100<10>; malloc(2) = 300<11>; realloc(100<10>, 5) = 200<12>; malloc(3) = 100<13>; free(300<11>); "
        "malloc(4) = 300<14>; free(300<14>); ");
}

TEST_CASE("order: a realloc without a return is no event") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, record_realloc_begin, 0x100, 0, 20);
  t.order.merge_all();
  CHECK(t.lines == "malloc(1) = 100<10>; ");
}

TEST_CASE("order: a damaged realloc or report of pages that has no block is counted, and waits for nothing") {
  Threads t;
  t.record(0, record_realloc_begin, 0, 0, 10);
  t.record(0, record_pages, 0, 0, 20);
  t.record(0, malloc_kind, 0x100, 8, 30);
  t.order.merge_all();
  CHECK(t.order.is_empty());
  CHECK(t.order.repairs().total() == 2);
  CHECK(t.lines.starts_with("malloc(8) = 100"));
}

TEST_CASE("order: a block whose end was not seen is ended when its address is used again, and that is counted") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(0, malloc_kind, 0x100, 2, 20);
  t.order.merge_until(20 + 2 * stamp_slack - 1);
  CHECK(t.lines == "malloc(1) = 100<10>; ");
  t.order.merge_until(20 + 2 * stamp_slack);
  CHECK(t.lines == "malloc(1) = 100<10>; free(100<10>); malloc(2) = 100<11>; ");
  CHECK(t.order.repairs()[Repair::double_allocation] == 1);
}

TEST_CASE("order: blocks that were never seen get tags of the reserve while it lasts") {
  Threads t({1});
  t.record(0, free_kind, 0x100, 0, 10);
  t.record(0, free_kind, 0x200, 0, 20);
  t.record(0, malloc_kind, 0x100, 1, 30);
  t.order.merge_all();
  CHECK(t.lines == "free(100<1>); malloc(1) = 100<2>; ");
  CHECK(t.order.repairs()[Repair::unmatched_free] == 1);
}

TEST_CASE("order: after an attach, no event of another thread overtakes the end of an unknown block") {
  Threads t({9, true});
  t.record(0, free_kind, 0x900, 0, 10);
  t.record(0, malloc_kind, 0x100, 1, 11);
  t.record(0, free_kind, 0x100, 0, 12);
  t.record(1, malloc_kind, 0x100, 2, 13);
  t.order.merge_until(9000);
  CHECK(t.lines == "free(900<1>); malloc(1) = 100<10>; free(100<10>); malloc(2) = 100<11>; ");
  CHECK(t.order.repairs().total() == 0);
}

TEST_CASE("order: two allocations that wait for one address are counted as a doubt") {
  Threads t;
  t.record(0, malloc_kind, 0x100, 1, 10);
  t.record(1, malloc_kind, 0x100, 2, 20);
  t.record(2, malloc_kind, 0x100, 3, 21);
  t.record(3, free_kind, 0x100, 0, 22);
  t.order.merge_until(9000);
  CHECK(t.order.repairs()[Repair::order_race] >= 1);
}

TEST_CASE("order: an exchange of blocks has the same order wherever in it the stamps' upper bits change") {
  std::uint64_t inversions = 0, others = 0;
  const std::string wanted = exchange(1'000'000, inversions);
  CHECK(inversions > 100);
  for (const std::uint64_t after : {1, 1000, 77'777, 400'000}) {
    CHECK(exchange((std::uint64_t{3} << 32) - after, others) == wanted);
    CHECK(others == inversions);
  }
}
