// Runs the worker's loop, runners and threads in the process of the test, so that sanitizers see them. Blocks go from
// thread to thread, chunks go back and forth, and slots are used again.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "cmtreplay/run/control/feed.h"

extern "C" {
#include "cmtreplay/worker/live_blocks.h"
#include "cmtreplay/worker/runner.h"
}

using namespace cmt::replay;

namespace {

std::atomic<std::int64_t> live{0};

void* counted_malloc(std::size_t size) { return ++live, std::malloc(size); }
void counted_free(void* block) {
  if (block) --live;
  std::free(block);
}
void* counted_realloc(void* block, std::size_t size) { return live += block ? 0 : 1, std::realloc(block, size); }

/// The block of an allocator that has only one, and refuses to resize it.
alignas(4096) char only_block[64 * 4096];
std::atomic<int> frees{0};

void* refusing_malloc(std::size_t) { return only_block; }
void* refusing_realloc(void*, std::size_t) { return nullptr; }
void refusing_free(void*) { ++frees; }
void refusing_free_sized(void*, std::size_t, std::size_t) { std::abort(); }

/// A trace of threads that hand blocks around. One thread makes a block, the next one makes it larger, and a third one
/// frees it. Some threads end on the way.
std::string relay(int threads, int blocks, int tag = 0) {
  std::string text;
  const auto line = [&text](const std::string& call, int thread) {
    text += call + " thread=" + std::to_string(thread) + "\n";
  };
  const auto block = [](int number) { return "<" + std::to_string(number) + ">"; };
  for (int i = 0; i < blocks; ++i) {
    const int first = ++tag, second = ++tag;
    line("malloc(24) = " + block(first), i % threads);
    line("realloc(" + block(first) + ", 5000) = " + block(second), (i + 1) % threads);
    line("free(" + block(second) + ")", (i + 2) % threads);
    line("free(0)", i % threads);
    if (i % 100 == 99) line("thread_exit()", 1 + i / 100 % (threads - 1));
  }
  for (int thread = 1; thread < threads; ++thread) line("thread_exit()", thread);
  return text;
}

PreparedTrace prepare(const std::string& text, const TraceOptions& options) {
  const auto open = [text](PreparedTrace::Stacks) {
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    lseek(fd, 0, SEEK_SET);
    return cmt::Reader(fd, "test.trace");
  };
  return PreparedTrace(open, options, [](std::uint64_t, std::uint64_t) {});
}

/// A worker without a process. The trace has to end its threads: a thread that stays would use the worker's memory
/// after the end.
class Engine {
 public:
  explicit Engine(const PreparedTrace& trace, bool plans_again = false) : slots_(trace.plan().slots) {
    const auto when_full = [] { std::this_thread::yield(); };
    if (plans_again)
      feed_ = std::make_unique<PlanningFeed>(trace, trace.plan().order, when_full);
    else if (trace.chunks().in_memory())
      feed_ = std::make_unique<PreparedFeed>(trace);
    else
      feed_ = std::make_unique<CopyingFeed>(trace, when_full);
    region = std::make_unique<ControlRegion>(feed_->sizes());
    feed_->attach(*region);
    region->get().several = trace.plan().order == Order::one_thread ? 0 : 1;
    region->get().touch = touch_pages;
    replay_.control = &region->get();
    replay_.lanes = region->lanes().data();
    operations_.emplace(feed_->chunks().memory(),
                        std::size_t{feed_->chunks().count()} * chunk_words * sizeof(std::uint64_t));
    replay_.operations = reinterpret_cast<std::uint64_t*>(operations_->begin());
    if (region->get().recycles) replay_.chunk_free = region->freed();
    replay_.slots = slots_.data();
    stacks_bytes_ = region->lanes().size() * lane_stack_bytes;
    replay_.stacks =
        static_cast<char*>(mmap(nullptr, stacks_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    replay_.thread_body = run_lane;
    replay_.calls.malloc = counted_malloc;
    replay_.calls.free = counted_free;
    replay_.calls.realloc = counted_realloc;
    schedule_open(&replay_.schedule, 100, region->epochs().data(), region->get().epoch_mask);
  }

  /// From this size on, only pages that the trace has as touched are written.
  void touch_recorded_pages(std::uint64_t min) {
    region->get().touches_recorded = 1;
    region->get().touched_min = min;
  }

  void refuse_resizing() {
    replay_.calls.malloc = refusing_malloc;
    replay_.calls.realloc = refusing_realloc;
    replay_.calls.free = refusing_free;
    replay_.calls.free_sized = refusing_free_sized;
  }

  /// Runs the whole trace, and stops at every mark.
  void run(const PreparedTrace& trace) {
    live = 0;
    std::thread main_thread([this] { run_main_thread(); });
    for (const Mark& mark : trace.plan().marks) {
      feed_->publish_until(mark);
      while (!still()) std::this_thread::yield();
      CHECK(live == static_cast<std::int64_t>(mark.live.blocks));
    }
    feed_->publish_rest();
    main_thread.join();
  }

  void run_to_end() {
    std::thread main_thread([this] { run_main_thread(); });
    feed_->publish_rest();
    main_thread.join();
  }

  std::unique_ptr<ControlRegion> region;

 private:
  void run_main_thread() {
    runner runner;
    runner_open(&runner, &replay_, 0);
    run_lane(&runner);
    finish_threads(&replay_);
  }

  bool still() const {
    for (const lane& lane : std::as_const(*region).lanes()) {
      const std::uint32_t state = __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE);
      if (state == lane_running) return false;
      if (__atomic_load_n(&lane.position, __ATOMIC_RELAXED) != lane.published * sizeof(std::uint64_t)) return false;
    }
    return true;
  }

  std::vector<void*> slots_;
  std::unique_ptr<Feed> feed_;
  replay replay_{};
  std::optional<MappedMemory> operations_;
  std::size_t stacks_bytes_ = 0;
};

}  // namespace

TEST_CASE("engine: at every mark the live blocks are those of the trace, in any order, from memory, file and trace") {
  const std::string text = relay(3, 4000);
  for (const bool strict : {false, true}) {
    for (const std::uint64_t bytes_max : {std::uint64_t{64} << 20, std::uint64_t{0}}) {
      const PreparedTrace trace = prepare(text, {.strict = strict, .prepared_bytes_max = bytes_max});
      CHECK(trace.plan().lanes == 3);
      for (const bool plans_again : {false, true}) {
        Engine engine(trace, plans_again);
        engine.run(trace);
        CHECK(live == 0);
        for (const lane& lane : engine.region->lanes()) CHECK(lane.refused == 0);
      }
    }
  }
}

TEST_CASE("engine: a second thread comes late, and gets slots that blocks of the first one have left") {
  std::string text;
  const auto tag_text = [](int tag) { return "<" + std::to_string(tag) + ">"; };
  for (int tag = 1; tag <= 5000; ++tag) text += "malloc(24) = " + tag_text(tag) + "\n";
  for (int tag = 2; tag <= 5000; tag += 2) text += "free(" + tag_text(tag) + ")\n";
  for (int tag = 1; tag <= 5000; tag += 2)
    text += "realloc(" + tag_text(tag) + ", 9000) = " + tag_text(tag + 5000) + "\n";
  text += relay(3, 4000, 10000);
  for (int tag = 5001; tag <= 10000; tag += 2) text += "free(" + tag_text(tag) + ") thread=1\n";
  text += "thread_exit() thread=1\n";
  for (const bool strict : {false, true}) {
    const PreparedTrace trace = prepare(text, {.strict = strict, .prepared_bytes_max = 64 << 20});
    CHECK(trace.plan().slots < 5000 + 500 + (strict ? 0 : 3 * epoch_operations));
    Engine engine(trace);
    engine.run(trace);
    CHECK(live == 0);
  }
}

TEST_CASE("engine: a block that could not be resized is not touched behind its end, and is freed without a size") {
  const std::string text =
      "#cmt text=1\n#cmt touched_min=16384\n"
      "malloc(20000) = <1> thread=0\n"
      "touch(<1>, 4096, 1, 8192) thread=0\n"
      "realloc(<1>, 200000) = <2> thread=1\n"
      "touch(<2>, 4096, 2, 100000) thread=0\n"
      "free_sized(<2>, 200000) thread=0\n"
      "thread_exit() thread=1\n";
  for (const bool threads : {false, true}) {
    const PreparedTrace trace = prepare(text, {.threads = threads, .prepared_bytes_max = 64 << 20});
    REQUIRE(trace.plan().lanes == (threads ? 2 : 1));
    std::fill(std::begin(only_block), std::end(only_block), 0);
    frees = 0;
    Engine engine(trace);
    engine.touch_recorded_pages(16384);
    engine.refuse_resizing();
    engine.run_to_end();
    CHECK(only_block[8192] == 1);
    CHECK(std::count(std::begin(only_block) + 20000, std::end(only_block), 0) == sizeof only_block - 20000);
    CHECK(frees == 1);
  }
}

TEST_CASE("engine: whole pages of a block are given back, and may be touched again") {
  const std::string text =
      "malloc(200000) = <1> thread=0\n"
      "touch(<1>, 4096, 0, 0) thread=0\n"
      "discard(<1>, 12288, 100) thread=1\n"
      "touch(<1>, 4096, 1, 8192) thread=1\n"
      "thread_exit() thread=1\n";
  for (const bool threads : {false, true}) {
    const PreparedTrace trace = prepare(text, {.threads = threads, .prepared_bytes_max = 64 << 20});
    CHECK(trace.plan().facts.discard_events == 1);
    std::fill(std::begin(only_block), std::end(only_block), 2);
    Engine engine(trace);
    engine.touch_recorded_pages(16384);
    engine.refuse_resizing();
    engine.run_to_end();
    CHECK(only_block[4095] == 2);
    CHECK(only_block[4096] == 0);
    CHECK(only_block[8192] == 1);
    CHECK(only_block[8193] == 0);
    CHECK(only_block[12288] == 1);
    CHECK(only_block[12289] == 2);
  }
}

TEST_CASE("engine: one thread's blocks need no order") {
  const PreparedTrace trace = prepare(relay(3, 20000), {.threads = false});
  Engine engine(trace);
  engine.run(trace);
  CHECK(live == 0);
}

#ifndef CMT_SANITIZED
TEST_CASE("live blocks: a table without memory to grow refuses blocks, and is still searched") {
  REQUIRE(live_blocks_open() == 0);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  const auto block = [](std::uint64_t number) {
    return live_block{
        .begin = 0x10000 + 16 * number, .size = 16, .usable = 16, .seed = 1, .position = number, .lane = 0};
  };
  setrlimit(RLIMIT_AS, &none);
  std::uint64_t number = 0;
  for (live_block next = block(0); number < 1 << 20 && live_blocks_insert(&next); next = block(++number)) continue;
  const bool is_absent_found = live_blocks_find(block(number).begin) != nullptr;
  const live_block absent = live_blocks_remove(block(number).begin), first = live_blocks_remove(block(0).begin);
  setrlimit(RLIMIT_AS, &before);
  CHECK(number == (1 << 16) - 1);
  CHECK_FALSE(is_absent_found);
  CHECK(absent.begin == 0);
  CHECK(first.begin == block(0).begin);
  const live_block last = block(number);
  CHECK(live_blocks_insert(&last));
}
#endif
