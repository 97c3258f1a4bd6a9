// Both sides of the rings as threads of one process, for the thread sanitizer, which follows neither two processes nor
// two mappings of the same memory. The start of the collector and files are left out.
//
// The main thread, then four threads at once, then four in turn, then four at once and two beside them allocate and
// free addresses of a simulated allocator. As in a real one, a free is a release operation on the address and an
// allocation an acquire, and one thread frees blocks of another. The drainer and the encoder are threads as in the
// collector. Blocks have different sizes, which shows that each free ends the block that it was given.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "preload/collector/drain/backlog.h"
#include "preload/collector/drain/drainer.h"
#include "preload/collector/order/order.h"

extern "C" {
#include "preload/program/collector_start.h"
#include "preload/program/hooks/loads.h"
#include "preload/program/lifecycle.h"
#include "preload/program/rings.h"
#include "preload/program/settings.h"
#include "preload/program/variants.h"

// The rest of the tracer, which is not under test.
static Control* shared;
long collector_start(Control* control) {
  shared = control;
  return 0;
}
const char* collector_refused_path() { return nullptr; }
const char* collector_refused_type() { return nullptr; }
bool collector_is_gone() { return false; }
void collector_reap() {}
void collector_await_name() {}
bool collector_end_supervisor() { return false; }
bool collector_report_refusal(long) { return true; }
void collector_forget() {}
const char* setting_value(Setting) { return nullptr; }
bool setting_is(Setting, const char*) { return false; }
bool setting_has(Setting, const char*) { return false; }
bool setting_is_given(Setting) { return false; }
std::uint64_t setting_number(Setting) { return 0; }
std::uint64_t setting_bytes(Setting) { return 0; }
bool path_is_given(std::uint32_t) { return false; }
bool loads_are_awaited(const void*) { return false; }
void variants_choose(Variant) {}
long path_create(char*, std::uint32_t, int, std::uint32_t) { return -1; }
}

using namespace cmt::collector;

namespace {

constexpr unsigned programs_threads = 4, addresses = 64, foreign_blocks = 600;

/// An address and its block; 0: it is free.
struct Cell {
  std::atomic<std::uint32_t> block = 0;
  std::atomic<bool> is_taken = false;
};

std::array<Cell, addresses> cells;
std::atomic<std::uint32_t> blocks = 0;

void* address_of(std::size_t cell) { return reinterpret_cast<void*>(0x100000 + cell * 1024); }
std::uint32_t size_of(std::uint32_t block) { return 1 + block % 997; }

/// As the interposed malloc does after the real one, and free before it.
void record_if_allowed(std::uint32_t kind, const void* address, std::uint64_t size) {
  if (recording_is_on()) record(kind, address, size, nullptr);
}

/// Allocates if a cell is free, else frees its block, whichever thread it is from.
void churn(unsigned seed, int calls) {
  std::uint32_t random = seed;
  for (int i = 0; i < calls; ++i) {
    random = random * 1664525 + 1013904223;
    const std::size_t number = random >> 16 & (addresses - 1);
    Cell& cell = cells[number];
    if (cell.is_taken.exchange(true, std::memory_order_acquire)) continue;  // another thread uses it
    if (const std::uint32_t block = cell.block.load(std::memory_order_relaxed); block != 0) {
      record_if_allowed(kind_free_sized, address_of(number), size_of(block));
      cell.block.store(0, std::memory_order_relaxed);
    } else {
      const std::uint32_t fresh = ++blocks;
      cell.block.store(fresh, std::memory_order_relaxed);
      record_if_allowed(kind_malloc, address_of(number), size_of(fresh));
    }
    cell.is_taken.store(false, std::memory_order_release);
  }
}

/// The thread sanitizer no longer tracks a thread when the last round of its destructors runs, in which the tracer
/// records the thread's exit. So begin_thread() leaves the destructor out, and end_thread() records the exit.
void begin_thread() { thread_self.has_destructor = 1; }
void end_thread() {
  Call exit{};
  exit.kind = kind_thread_exit;
  record_long(&exit, nullptr);
  __atomic_store_n(&thread_self.ring->left, 1, __ATOMIC_RELEASE);
}

/// The collector's two threads.
class Collector {
 public:
  Collector() : memory_(rings_descriptor(), *shared), backlog_("/tmp", 1 << 20, 1 << 28), drainer_(memory_, backlog_) {
    drains_ = std::thread([this] { drain(); });
    encodes_ = std::thread([this] { encode(); });
  }

  /// All events until now, in order.
  std::vector<cmt::Event> finish() {
    over_ = true;
    drains_.join();
    encodes_.join();
    return std::move(events_);
  }

  std::uint64_t repairs() const { return order_.repairs().total(); }

 private:
  void drain() {
    while (!over_) {
      drainer_.pass();
      std::this_thread::yield();
    }
    while (drainer_.pass(true) != std::size_t{0}) continue;
    backlog_.put({.type = WorkItem::Type::end});
  }

  void encode() {
    for (;;) {
      backlog_.wait_for_records(0, 1000);
      auto item = backlog_.next_item();
      if (!item) continue;
      if (item->type == WorkItem::Type::records) order_.append_records(item->ring, std::move(item->records));
      if (item->type == WorkItem::Type::cut) order_.merge_until(item->stamp);
      if (item->type == WorkItem::Type::end) return order_.merge_all();
    }
  }

  RingMemory memory_;
  Backlog backlog_;
  Drainer drainer_;
  std::vector<cmt::Event> events_;
  EventOrder order_{EarlierBlocks{0}, [this](const cmt::EventBatch& batch) {
                      batch.for_each([this](const cmt::BookedEvent& booked) { events_.push_back(booked.event); });
                      return std::size_t{64};
                    }};
  std::atomic<bool> over_ = false;
  std::thread drains_, encodes_;
};

/// Checks that each allocation has a new tag, and that each free has the tag and the size of a live block. At the end
/// as many blocks are live as cells have one. Returns how many were allocated.
std::uint32_t check_pairs(const std::vector<cmt::Event>& events) {
  std::map<cmt::Tag, std::uint64_t> live;
  std::uint32_t allocated = 0, wrong = 0;
  for (const cmt::Event& event : events) {
    if (event.makes_block()) {
      ++allocated;
      wrong += !live.emplace(event.tag, event.size).second;
    } else if (event.kind == cmt::Kind::free_sized) {
      const auto block = live.extract(event.old_tag);
      wrong += block.empty() || block.mapped() != event.size;
    }
  }
  CHECK(wrong == 0);
  std::uint32_t still_live = 0;
  for (const Cell& cell : cells) still_live += cell.block != 0;
  CHECK(live.size() == still_live);
  return allocated;
}

void churn_together(unsigned seed, int calls) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < programs_threads; ++i) {
    threads.emplace_back([=] {
      begin_thread();
      churn(seed + i, calls);
      end_thread();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// While others churn, a thread frees so many blocks of this one that all events have true stamps from there on.
void share_much(unsigned seed, int calls) {
  std::thread others([=] { churn_together(seed, calls); });
  const std::uint32_t first = blocks.fetch_add(foreign_blocks) + 1;
  for (std::uint32_t i = 0; i < foreign_blocks; ++i)
    record_if_allowed(kind_malloc, address_of(addresses + i), size_of(first + i));
  std::thread freeing([=] {
    begin_thread();
    for (std::uint32_t i = 0; i < foreign_blocks; ++i)
      record_if_allowed(kind_free_sized, address_of(addresses + i), size_of(first + i));
    end_thread();
  });
  freeing.join();
  others.join();
}

}  // namespace

TEST_CASE("rings: what threads record while it is drained is whole and in order, together, alone and in turns") {
  constexpr int calls = 30'000;
  begin_thread();
  start_recording();
  stamps_choose(stamps_sparse);
  start_collecting();
  REQUIRE(shared != nullptr);
  Collector collector;
  churn(1, calls);
  churn_together(2, calls);
  std::atomic<unsigned> turn = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < programs_threads; ++i) {
    threads.emplace_back([i, &turn] {
      begin_thread();
      for (unsigned round = 0; round < 3; ++round) {
        while (turn != round * programs_threads + i) std::this_thread::yield();
        churn(100 * round + i, calls / 3);
        ++turn;
      }
      end_thread();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stamping == stamping_sparse);
  stamps_choose(stamps_by_sharing);
  share_much(1000, calls);
  CHECK(stamping == stamping_all);
  const std::vector<cmt::Event> events = collector.finish();
  CHECK(check_pairs(events) == blocks);
  CHECK(collector.repairs() == 0);
  CHECK_FALSE(tracing.is_stopped);
}
