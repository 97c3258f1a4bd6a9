// Time and memory are measured in different runs, because reading smaps and clearing reference bits locks the worker's
// memory map and empties its TLB. A timed run is left alone from its first operation to its last.
#include "cmtreplay/run/runs.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "cmtreplay/run/memory_run.h"

namespace cmt::replay {
namespace {

/// Of one lane alone: no time passes for it while it has nothing to do. With several, one may work while another waits,
/// and the time is the clock's.
TimedSample sample_of(const ControlRegion& results) {
  const control& whole = results.get();
  TimedSample sample{.wall_ns = whole.wall_ns,
                     .cpu_ns = whole.cpu_ns,
                     .minor_faults = whole.minor_faults,
                     .major_faults = whole.major_faults};
  for (const lane& lane : results.lanes()) {
    sample.refused_calls += lane.refused;
    sample.starved_ns += lane.starved_ns;
    sample.block_waits += lane.waits.block_waits;
    sample.block_wait_ns += lane.waits.block_wait_ns;
    sample.window_waits += lane.waits.window_waits;
    sample.window_wait_ns += lane.waits.window_wait_ns;
    sample.turn_waits += lane.waits.turn_waits;
  }
  if (results.lanes().size() == 1) sample.wall_ns -= std::min(sample.starved_ns, sample.wall_ns);
  return sample;
}

/// Runs from the start to the end, without a stop between.
std::optional<Death> run_through(Worker& worker) {
  if (auto death = worker.wait_until_ready()) return death;
  return worker.finish();
}

/// Returns why there are no hardware counters, or nothing.
std::string run_timed(const Stage& stage, Result& result) {
  Worker worker(stage, result.allocator);
  if ((result.death = worker.wait_until_ready())) return "";
  result.replay_bytes = worker.replay_bytes();
  const process::Counters counters(worker.pid());
  counters.start();
  if ((result.death = worker.finish())) return "";
  result.timed.push_back(sample_of(worker.results()));
  result.timed.back().counters = counters.stop();
  return counters.missing();
}

/// A short trace is replayed until there is something to tell of one call in a thousand, or as often as for its time.
void run_latencies(const Stage& stage, Result& result, unsigned rounds) {
  constexpr std::uint64_t enough = 20'000;
  for (unsigned round = 0; round < rounds && result.latencies.samples() < enough; ++round) {
    Worker worker(stage, result.allocator, {.latencies = true});
    if ((result.death = run_through(worker))) return;
    result.latencies.add(worker.results());
  }
}

void run_rounds(const Stage& stage, Runs& runs, const Rounds& rounds, const Progress& progress) {
  std::vector<Result>& results = runs.results;
  std::mt19937 random(rounds.seed);
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (unsigned round = 1; round <= rounds.count; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      if (results[i].death) continue;
      progress(results[i].allocator.name + ", run " + std::to_string(round) + " of " + std::to_string(rounds.count));
      runs.counters_missing = run_timed(stage, results[i]);
    }
  }
}

}  // namespace

std::uint64_t MemoryRun::peak_bytes() const {
  return std::max(peak_at_marks_bytes, peak_by_high_water_bytes.value_or(0));
}

const MarkSample* MemoryRun::at(std::uint64_t event) const {
  const auto found = std::find_if(marks.begin(), marks.end(),
                                  [event](const MarkSample& sample) { return sample.mark.event == event; });
  return found == marks.end() ? nullptr : &*found;
}

Runs run_all(const Stage& stage, const std::vector<Allocator>& allocators, const Rounds& rounds,
             const Progress& progress) {
  Runs runs;
  for (const Allocator& allocator : allocators) runs.results.push_back({.allocator = allocator});
  try {
    run_rounds(stage, runs, rounds, progress);
    for (Result& result : runs.results) {
      if (result.death) continue;
      progress(result.allocator.name + ", latencies");
      run_latencies(stage, result, rounds.count);
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
  Worker worker(stage, allocator, {.pointers = &pointers});
  return run_through(worker);
}

}  // namespace cmt::replay
