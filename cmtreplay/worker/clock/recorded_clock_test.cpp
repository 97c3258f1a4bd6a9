// Tests the order in which sleepers wake when the clock jumps, and the window that keeps lanes together.
#include "cmtreplay/worker/clock/recorded_clock.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cmtreplay/worker/clock/time_window.h"

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// The recorded clock of this process. It goes on from test to test.
class ClockInTest {
 public:
  ClockInTest() : begin_(recorded_clock_ns()) {
    clock_host = {.wait = pthread_cond_wait,
                  .signal = pthread_cond_signal,
                  .broadcast = pthread_cond_broadcast,
                  .await_new_threads = nullptr};
  }

  std::uint64_t at(std::uint64_t ns) const { return begin_ + ns; }
  std::uint64_t now() const { return recorded_clock_ns() - begin_; }
  void advance(std::uint64_t ns) const { recorded_clock_advance(begin_ + ns); }

 private:
  std::uint64_t begin_;
};

/// A log of what threads did, and when.
class ClockLog {
 public:
  void add(const std::string& what, std::uint64_t ns) {
    const std::lock_guard lock(mutex_);
    text_ += (text_.empty() ? "" : " ") + what + std::to_string(ns / ms);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

/// A thread of an allocator, which is met before the constructor returns.
class MetThread {
 public:
  template <class Body>
  explicit MetThread(Body body)
      : thread_([this, body] {
          recorded_clock_meet();
          is_met_.store(true);
          is_met_.notify_one();
          body();
        }) {
    is_met_.wait(false);
  }

 private:
  std::atomic<bool> is_met_ = false;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("recorded clock: it goes to the largest time, and never back") {
  const ClockInTest clock;
  clock.advance(5 * ms);
  clock.advance(3 * ms);
  CHECK(clock.now() == 5 * ms);
  {
    std::vector<std::jthread> lanes;
    for (std::uint64_t lane = 1; lane <= 4; ++lane)
      lanes.emplace_back([&clock, lane] {
        for (std::uint64_t i = 1; i <= 1000; ++i) {
          clock.advance(10 * ms + i * lane);
          if (clock.now() < 10 * ms + i * lane) std::abort();
        }
      });
  }
  CHECK(clock.now() == 10 * ms + 4000);
}

TEST_CASE("recorded clock: a jump lets each sleeper run at its time, in order") {
  const ClockInTest clock;
  ClockLog log;
  const auto body = [&](const char* name, std::uint64_t period) {
    return [&, name, period] {
      for (std::uint64_t due = period; due <= 1000 * ms; due += period) {
        recorded_clock_sleep(clock.at(due));
        log.add(name, clock.now());
      }
    };
  };
  const MetThread a(body("a", 300 * ms)), b(body("b", 400 * ms));
  clock.advance(250 * ms);
  log.add("now", clock.now());
  clock.advance(800 * ms);
  log.add("now", clock.now());
  clock.advance(2000 * ms);  // waits until both threads have ended
  CHECK(log.text() == "now250 a300 b400 a600 b800 now800 a900");
}

TEST_CASE("recorded clock: a thread that sleeps on a condition wakes at its time, or when it is signalled") {
  const ClockInTest clock;
  ClockLog log;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const MetThread thread([&] {
    pthread_mutex_lock(&mutex);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const int error = recorded_clock_wait(&condition, &mutex, recorded_clock_ns() + 100 * ms);
      log.add(error == ETIMEDOUT ? "due" : "signalled", clock.now());
    }
    log.add(recorded_clock_wait(&condition, &mutex, recorded_clock_ns()) == ETIMEDOUT ? "past" : "", clock.now());
    pthread_mutex_unlock(&mutex);
  });
  clock.advance(150 * ms);
  pthread_mutex_lock(&mutex);
  recorded_clock_signal(&condition, 0);
  pthread_mutex_unlock(&mutex);
  clock.advance(240 * ms);
  recorded_clock_settle();
  log.add("now", clock.now());
  clock.advance(300 * ms);
  recorded_clock_settle();
  CHECK(log.text() == "due100 signalled150 now240 due250 past250");
}

TEST_CASE("recorded clock: a thread that waits for something else does not stop it") {
  const ClockInTest clock;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const std::uint32_t before = recorded_clock_strays();
  {
    const MetThread thread([&] {
      char byte;
      if (read(ends[0], &byte, 1) != 1) std::abort();
    });
    clock.advance(1 * ms);
    CHECK(clock.now() == 1 * ms);
    CHECK(recorded_clock_strays() == before + 1);
    CHECK(write(ends[1], "x", 1) == 1);
  }
  close(ends[1]);
  close(ends[0]);
}

TEST_CASE("recorded clock: threads that have ended leave room for others") {
  const ClockInTest clock;
  int met = 0;
  for (int i = 0; i < 3 * background_threads_max; ++i) std::thread([&] { met += recorded_clock_meet(); }).join();
  CHECK(met == 3 * background_threads_max);
  clock.advance(1 * ms);
  CHECK(clock.now() == 1 * ms);
}

TEST_CASE("time window: no lane is more than the window ahead of another") {
  std::vector<lane> lanes(3);
  for (lane& each : lanes) each.state = lane_running;
  std::atomic<std::uint64_t> times[3] = {};
  std::atomic<std::uint64_t> furthest = 0;
  const auto run = [&](std::uint32_t number) {
    for (std::uint64_t i = 1; i <= 500; ++i) {
      const std::uint64_t ns = i * (number + 1) * (time_window_ns / 10);
      time_window_enter(lanes.data(), 3, &lanes[number], ns);
      times[number].store(ns);
      for (std::uint32_t other = 0; other < 3; ++other) {
        if (__atomic_load_n(&lanes[other].state, __ATOMIC_ACQUIRE) != lane_running) continue;
        const std::uint64_t stated = __atomic_load_n(&lanes[other].stated_ns, __ATOMIC_ACQUIRE);
        const std::uint64_t ahead = ns > stated ? ns - stated : 0;
        if (ahead > furthest.load()) furthest.store(ahead);
      }
    }
    __atomic_store_n(&lanes[number].state, std::uint32_t{lane_ended}, __ATOMIC_RELEASE);
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t number = 0; number < 3; ++number) threads.emplace_back(run, number);
  }
  CHECK(furthest.load() <= time_window_ns);
}
