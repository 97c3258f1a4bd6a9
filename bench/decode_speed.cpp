// decode_speed FILE: reads a trace several times, core only and with everything, and prints the best ns an event of
// each.

#include <chrono>
#include <cstdio>
#include <exception>

#include "cmt/reader.h"

namespace {

/// Nanoseconds an event for one pass over the trace.
double pass(const char* path, bool everything) {
  const auto begin = std::chrono::steady_clock::now();
  cmt::ReadOptions options;
  options.addresses = options.times = options.usable = everything;
  cmt::Reader reader(path, options);
  std::uint64_t events = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) events += batch.size();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  return events == 0 ? 0 : time.count() / static_cast<double>(events);
}

double best_of(const char* path, bool everything) {
  double best = pass(path, everything);
  for (int i = 0; i < 4; ++i) best = std::min(best, pass(path, everything));
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: decode_speed FILE\n", stderr), 2;
  try {
    std::printf("core only %.1f ns an event, with addresses %.1f\n", best_of(argv[1], false), best_of(argv[1], true));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "decode_speed: %s\n", error.what());
    return 1;
  }
}
