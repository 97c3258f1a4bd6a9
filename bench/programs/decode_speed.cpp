// decode_speed FILE: reads a .cmt several times and prints the least CPU time in ns an event:
//
//   - the core stream only
//   - all streams
//
//   - the core stream on two threads
//   - two readers of the whole file at once, which is the most that two cores can do
//
//   - writing the same events (Writer::add, to /dev/null), which a recorder pays

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <exception>
#include <thread>
#include <vector>

#include "cmt/reader.h"
#include "cmt/writer.h"

namespace {

cmt::ReadOptions core_only() {
  cmt::ReadOptions options;
  options.addresses = options.times = options.usable = false;
  return options;
}

std::uint64_t read_all(const char* path, const cmt::ReadOptions& options) {
  cmt::Reader reader(path, options);
  std::uint64_t events = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) events += batch.size();
  return events;
}

std::uint64_t read_twice_at_once(const char* path) {
  std::uint64_t here = 0, there = 0;
  std::thread other([&] { there = read_all(path, core_only()); });
  here = read_all(path, core_only());
  other.join();
  return here + there;
}

std::uint64_t read_in_parts(const char* path) {
  std::atomic<std::uint64_t> events = 0;
  cmt::for_each_part(path, core_only(), 2,
                     [&](std::size_t, auto batch) { events.fetch_add(batch.size(), std::memory_order_relaxed); });
  return events;
}

std::uint64_t write_all(const std::vector<cmt::Event>& events) {
  const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  cmt::Writer writer(fd, {}, {});
  for (const cmt::Event& event : events) writer.add(event);
  writer.finish();
  close(fd);
  return events.size();
}

double now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Nanoseconds an event of the best of five, by a clock.
template <class Pass>
double best_of(clockid_t clock, const Pass& pass) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = now_ns(clock);
    const std::uint64_t events = pass();
    if (events != 0) best = std::min(best, (now_ns(clock) - begin) / static_cast<double>(events));
  }
  return best;
}

/// The first events of a trace, of those without a label: those live only until the next read.
std::vector<cmt::Event> some_of(const char* path) {
  std::vector<cmt::Event> events;
  cmt::Reader reader(path);
  for (auto batch = reader.read(); !batch.empty() && events.size() < 2000000; batch = reader.read()) {
    for (const cmt::Event& event : batch) {
      if (event.label.empty()) events.push_back(event);
    }
  }
  return events;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: decode_speed FILE\n", stderr), 2;
  try {
    const char* const path = argv[1];
    constexpr clockid_t cpu = CLOCK_PROCESS_CPUTIME_ID, wall = CLOCK_MONOTONIC;
    const double core = best_of(cpu, [&] { return read_all(path, core_only()); });
    const double everything = best_of(cpu, [&] { return read_all(path, {}); });
    std::printf("core only %.1f ns an event, with addresses %.1f\n", core, everything);
    const double apart = best_of(wall, [&] { return read_twice_at_once(path); });
    const double parts = best_of(wall, [&] { return read_in_parts(path); });
    std::printf("on two cores %.1f ns an event, two readers at once %.1f: %.2f times as fast\n", parts, apart,
                apart / parts);
    const std::vector<cmt::Event> events = some_of(path);
    std::printf("written in %.1f ns an event\n", best_of(cpu, [&] { return write_all(events); }));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "decode_speed: %s\n", error.what());
    return 1;
  }
}
