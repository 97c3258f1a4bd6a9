// Time and memory are measured in different runs, because reading smaps and clearing reference bits locks the worker's
// memory map and empties its TLB. A timed run is left alone from its first operation to its last.
#include "cmtreplay/runs.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "cmtreplay/memory_run.h"

namespace cmt::replay {
namespace {

constexpr unsigned seed = 20190613;

TimedSample sample_of(const control& results) {
  return {.wall_ns = results.wall_ns,
          .cpu_ns = results.cpu_ns,
          .minor_faults = results.minor_faults,
          .major_faults = results.major_faults,
          .refused_calls = results.refused};
}

/// Runs from the start to the end, without a stop between.
std::optional<Death> run_through(Worker& worker) {
  if (auto death = worker.wait_for_stop()) return death;
  worker.go();
  return worker.wait_for_stop();
}

void run_timed(const Stage& stage, Result& result) {
  Worker worker(stage, result.allocator, {}, nullptr);
  result.death = run_through(worker);
  if (!result.death) result.timed.push_back(sample_of(worker.results()));
}

void run_rounds(const Stage& stage, std::vector<Result>& results, unsigned rounds, const Progress& progress) {
  std::mt19937 random(seed);
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (unsigned round = 1; round <= rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      if (results[i].death) continue;
      progress(results[i].allocator.name + ", run " + std::to_string(round) + " of " + std::to_string(rounds));
      run_timed(stage, results[i]);
    }
  }
}

}  // namespace

std::uint64_t MemoryRun::peak_bytes() const {
  return std::max(peak_at_marks_bytes, peak_by_high_water_bytes.value_or(0));
}

Runs run_all(const Stage& stage, const std::vector<Allocator>& allocators, unsigned rounds, const Progress& progress) {
  Runs runs;
  for (const Allocator& allocator : allocators) runs.results.push_back({.allocator = allocator});
  try {
    run_rounds(stage, runs.results, rounds, progress);
    for (Result& result : runs.results) {
      if (result.death) continue;
      progress(result.allocator.name + ", memory");
      run_memory(stage, result);
    }
  } catch (const Interrupted&) {
    runs.interrupted = true;
  }
  return runs;
}

std::optional<Death> run_keeping_pointers(const Stage& stage, const Allocator& allocator,
                                          const SharedMemory& pointers) {
  Worker worker(stage, allocator, {}, &pointers);
  return run_through(worker);
}

}  // namespace cmt::replay
