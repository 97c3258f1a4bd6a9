#include "cmtreplay/run/runs.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace cmt::replay {
namespace {

/// With one lane the time in which it had no operations is not counted. With several, one lane may work while another
/// waits, so all time counts.
TimedSample sample_of(const ControlRegion& results) {
  const control& whole = results.get();
  TimedSample sample{.wall_ns = whole.wall_ns,
                     .cpu_ns = whole.cpu_ns,
                     .minor_faults = whole.minor_faults,
                     .major_faults = whole.major_faults};
  for (const lane& lane : results.lanes()) {
    sample.refused_calls += lane.refused;
    sample.starved_ns += lane.starved_ns;
    sample.waits.block_waits += lane.waits.block_waits;
    sample.waits.block_wait_ns += lane.waits.block_wait_ns;
    sample.waits.window_waits += lane.waits.window_waits;
    sample.waits.window_wait_ns += lane.waits.window_wait_ns;
    sample.waits.turn_waits += lane.waits.turn_waits;
  }
  if (results.lanes().size() == 1) sample.wall_ns -= std::min(sample.starved_ns, sample.wall_ns);
  return sample;
}

void run_timed(const ReplaySettings& settings, AllocatorResult& result, std::string& counters_missing) {
  WorkerProcess worker(settings, result.allocator);
  worker.wait_until_ready();
  result.replay_bytes = worker.replay_bytes();
  const process::Counters counters(worker.pid());
  counters.start();
  worker.run_to_end();
  result.timed.push_back(sample_of(worker.results()));
  result.timed.back().counters = counters.stop();
  counters_missing = counters.missing();
}

/// A short trace is replayed until there are enough samples for one call in a thousand, but at most once a round.
void run_latencies(const ReplaySettings& settings, AllocatorResult& result, unsigned rounds) {
  constexpr std::uint64_t enough = 20'000;
  for (unsigned round = 0; round < rounds && result.latencies.samples() < enough; ++round) {
    WorkerProcess worker(settings, result.allocator, {.latencies = true});
    worker.wait_until_ready();
    worker.run_to_end();
    result.latencies.add(worker.results());
  }
}

/// An allocator that has died is not run again.
template <class Run>
void run_unless_dead(AllocatorResult& result, Run run) {
  if (result.death) return;
  try {
    run();
  } catch (const Death& death) {
    result.death = death;
  }
}

}  // namespace

ReplayResults run_all(const ReplaySettings& settings, const std::vector<Allocator>& allocators,
                      const Progress& progress) {
  const unsigned rounds = settings.options.runs;
  ReplayResults results;
  for (const Allocator& allocator : allocators) results.allocators.push_back({.allocator = allocator});
  std::mt19937 random(settings.options.seed);
  std::vector<std::size_t> order(allocators.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  try {
    for (unsigned round = 1; round <= rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        AllocatorResult& result = results.allocators[i];
        run_unless_dead(result, [&] {
          progress(result.allocator.name + ", run " + std::to_string(round) + " of " + std::to_string(rounds));
          run_timed(settings, result, results.counters_missing);
        });
      }
    }
    for (AllocatorResult& result : results.allocators) {
      run_unless_dead(result, [&] {
        progress(result.allocator.name + ", latencies");
        run_latencies(settings, result, rounds);
        progress(result.allocator.name + ", memory");
        result.memory = run_memory(settings, result.allocator);
      });
    }
  } catch (const Interrupted&) {
    results.interrupted = true;
  }
  results.baseline = std::move(results.allocators.back());
  results.allocators.pop_back();
  return results;
}

}  // namespace cmt::replay
