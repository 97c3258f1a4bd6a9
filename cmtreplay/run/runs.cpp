// Repeats rounds until the medians are known well enough or the budget is spent.
#include "cmtreplay/run/runs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <thread>

#include "toolkit/output/numbers.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"
#include "toolkit/terminal/progress.h"

namespace cmt::replay {
namespace {

/// The figures of a timed run. With one lane, time in which it had no operations does not count. With several lanes all
/// time counts, since one lane may work while another waits.
TimedSample sample_of(const ControlRegion& results) {
  const control& whole = results.get();
  TimedSample sample{.wall_ns = whole.wall_ns,
                     .cpu_ns = whole.cpu_ns,
                     .kernel_ns = whole.kernel_ns,
                     .minor_faults = whole.minor_faults,
                     .major_faults = whole.major_faults};
  for (const lane& lane : results.lanes()) {
    sample.refused_calls += lane.refused;
    sample.starved_ns += lane.starved_ns;
    sample.given_back += lane.given_back.done;
    sample.give_back_failed += lane.given_back.failed;
    sample.give_back_missing += lane.given_back.missing;
    sample.waits.block_waits += lane.waits.block_waits;
    sample.waits.block_wait_ns += lane.waits.block_wait_ns;
    sample.waits.window_waits += lane.waits.window_waits;
    sample.waits.window_wait_ns += lane.waits.window_wait_ns;
    sample.waits.turn_waits += lane.waits.turn_waits;
  }
  if (results.lanes().size() == 1) sample.wall_ns -= std::min(sample.starved_ns, sample.wall_ns);
  return sample;
}

/// The time for which the living threads of a process have waited for a processor. A wake-up takes up to 50 us on an
/// idle machine, and does not count. 0 if the kernel does not say.
std::uint64_t waited_ns(pid_t pid) {
  std::uint64_t sum = 0;
  for (const int thread : process::read_threads(pid)) {
    std::ifstream file(process::path_of(pid, "task/" + std::to_string(thread) + "/schedstat"));
    std::uint64_t ran = 0, waited = 0, times = 0;
    if (file >> ran >> waited >> times) sum += waited - std::min(waited, times * 50'000);
  }
  return sum;
}

/// Whether waiting shows other work on the machine: not in a replay that waits itself.
bool has_loss(const ReplaySettings& settings) {
  return settings.options.pace <= 0 && !more_threads_than_cpus(settings.trace, settings.options);
}

/// Whether threads wait for each other, so that the kernel's count of waiting is needed.
bool counts_waiting(const ReplaySettings& settings) { return has_loss(settings) && settings.trace.plan().lanes > 1; }

/// `waited`: by all of its threads.
std::uint64_t lost_of(const TimedSample& sample, const ReplaySettings& settings, std::uint64_t waited) {
  if (!has_loss(settings) || counts_waiting(settings)) return waited;
  return sample.wall_ns - std::min(sample.wall_ns, sample.cpu_ns);
}

void run_timed(const ReplaySettings& settings, AllocatorResult& result, std::string& counters_missing) {
  WorkerProcess worker(settings, result.allocator);
  worker.wait_until_ready();
  result.replay_bytes = worker.replay_bytes();
  const std::uint64_t waited_before = counts_waiting(settings) ? waited_ns(worker.pid()) : 0;
  const process::Counters counters(worker.pid());
  counters.start();
  worker.run_to_end();
  TimedSample& sample = result.timed.emplace_back(sample_of(worker.results()));
  const std::uint64_t waited = counts_waiting(settings) ? waited_ns(worker.pid()) : 0;
  sample.lost_ns = lost_of(sample, settings, waited - std::min(waited, waited_before));
  sample.counters = counters.stop();
  counters_missing = counters.missing();
}

/// Whether a median is known to 1 %. Looked at after every tenth part of the runs so far. An interval becomes half as
/// wide with four times as many runs.
bool is_median_known(AllocatorResult& result, unsigned runs_min) {
  const std::size_t runs = result.timed.size();
  if (runs % (runs / runs_min) != 0) return false;
  const Interval interval = bootstrap_median(spread_of(result, &TimedSample::wall_ns).samples);
  const double width = (interval.high - interval.low) / (0.01 * interval.low);
  result.expected_runs = static_cast<double>(runs) * width * width;
  return width < 1;
}

/// Whether there were enough runs, after each of them.
bool is_settled(AllocatorResult& result, const ReplaySettings& settings) {
  const ReplayOptions& options = settings.options;
  if (result.death) return true;
  if (options.runs != 0) return result.timed.size() >= options.runs;
  if (settings.trace.plan().facts.calls == 0) return !result.timed.empty();
  if (result.timed.size() < options.rounds_min) return false;
  return result.allocator.null || result.spent_ns >= options.budget_ns || result.timed.size() >= options.rounds_max ||
         (options.stops_when_known && is_median_known(result, options.rounds_min));
}

/// A short trace is replayed until there are enough samples for one call in a thousand, but only so often.
void run_latencies(const ReplaySettings& settings, AllocatorResult& result, const std::function<void()>& show) {
  constexpr std::uint64_t enough = 20'000;
  const std::size_t rounds = std::min<std::size_t>(result.timed.size(), settings.options.latency_runs);
  for (std::size_t round = 0; round < rounds && result.latencies.samples() < enough; ++round) {
    show();
    WorkerProcess worker(settings, result.allocator, {.latencies = true});
    worker.wait_until_ready();
    worker.run_to_end();
    result.latencies.add(worker.results());
    ++result.latency_runs;
  }
}

unsigned wanted_memory_runs(const ReplayOptions& options) {
  return options.runs == 0 ? options.memory_runs : std::min(options.runs, options.memory_runs);
}

/// Keeps the run with the median peak.
void run_memory_often(const ReplaySettings& settings, AllocatorResult& result,
                      const std::optional<AllocatorMemory>& baseline, const std::function<void()>& show) {
  std::vector<MemoryRun> runs;
  for (unsigned i = 0; i < wanted_memory_runs(settings.options); ++i) {
    show();
    const terminal::ShareDone duration;
    const MemoryRun& run = runs.emplace_back(run_memory(settings, result.allocator, baseline, i));
    result.memory_runs.push_back(figures_of(run));
    result.memory_seconds += duration.seconds();
  }
  assert(!runs.empty());
  const auto median = runs.begin() + static_cast<std::ptrdiff_t>((runs.size() - 1) / 2);
  std::nth_element(runs.begin(), median, runs.end(),
                   [](const MemoryRun& a, const MemoryRun& b) { return a.peak_bytes() < b.peak_bytes(); });
  result.memory = std::move(*median);
}

/// Runs an allocator unless it has died, and notes its death.
template <class Run>
void run_unless_dead(AllocatorResult& result, Run run) {
  if (result.death) return;
  try {
    run();
  } catch (const Death& death) {
    result.death = death;
  }
}

/// One round of timed runs, with the allocators that are not settled.
void run_round(const ReplaySettings& settings, ReplayResults& results, std::span<const std::size_t> order,
               const Progress& progress) {
  for (const std::size_t i : order) {
    AllocatorResult& result = results.allocators[i];
    if (result.is_settled) continue;
    progress(result.allocator.name, runs_left(settings.options, results.allocators));
    const terminal::ShareDone duration;
    run_unless_dead(result, [&] { run_timed(settings, result, results.counters_missing); });
    if (settings.options.runs == 0 && !result.warm_up && !result.timed.empty()) {
      result.warm_up = std::move(result.timed.back());
      result.timed.pop_back();
    }
    result.spent_ns += static_cast<std::uint64_t>(1e9 * duration.seconds());
    result.is_settled = is_settled(result, settings);
  }
}

/// Measures latencies and memory. The null allocator is first, since its memory is the baseline of the others.
void run_further(const ReplaySettings& settings, ReplayResults& results, const Progress& progress) {
  std::vector<AllocatorResult*> order;
  for (AllocatorResult& result : results.allocators)
    order.insert(result.allocator.null ? order.begin() : order.end(), &result);
  std::optional<AllocatorMemory>& baseline = results.memory_baseline;
  for (AllocatorResult* const result : order) {
    run_unless_dead(*result, [&] {
      const auto show = [&](const char* kind) {
        progress(result->allocator.name + kind, runs_left(settings.options, results.allocators));
      };
      run_latencies(settings, *result, [&] { show(", latencies"); });
      if (result->is_asked)
        run_memory_often(settings, *result, baseline, [&] { show(", memory"); });
      else
        baseline = memory_at_start(settings, result->allocator);
      if (!baseline) baseline = result->memory->baseline;
    });
  }
}

}  // namespace

RunsLeft runs_left(const ReplayOptions& options, const std::vector<AllocatorResult>& results) {
  RunsLeft left;
  double memory_seconds = 0, memory_runs = 0;
  for (const AllocatorResult& result : results) {
    memory_seconds += result.memory_seconds;
    memory_runs += static_cast<double>(result.memory_runs.size());
  }
  for (const AllocatorResult& result : results) {
    const double timed = static_cast<double>(result.timed.size()) + (result.warm_up ? 1 : 0);
    const double spent = static_cast<double>(result.spent_ns) / 1e9, each = timed > 0 ? spent / timed : 0;
    const double latencies = result.latency_runs, memory = static_cast<double>(result.memory_runs.size());
    double further = 0, further_latencies = 0, further_memory = 0;
    if (!result.death) {
      const double in_budget = each > 0 ? static_cast<double>(options.budget_ns) / 1e9 / each : options.rounds_min;
      const double known_after = options.stops_when_known ? result.expected_runs : options.rounds_max;
      const double until_known = std::clamp<double>(known_after, options.rounds_min, options.rounds_max);
      const double adaptive = result.allocator.null
                                  ? options.rounds_min
                                  : std::max<double>(options.rounds_min, std::min(until_known, in_budget));
      const double wanted = options.runs != 0 ? options.runs : 1 + adaptive;
      further = result.is_settled ? 0 : std::max(1.0, wanted - timed);
      further_memory = result.is_asked ? wanted_memory_runs(options) - memory : 0;
      // One run for latencies has enough samples in all but short traces, whose runs take little.
      further_latencies = latencies > 0 || memory > 0 ? 0 : std::min(1U, options.latency_runs);
    }
    const double memory_each = memory_runs > 0 ? memory_seconds / memory_runs : 2 * each;
    left.done += static_cast<std::uint64_t>(timed + latencies + memory);
    left.total += static_cast<std::uint64_t>(timed + latencies + memory +
                                             std::round(further + further_latencies + further_memory));
    left.seconds += each * (further + further_latencies) + memory_each * further_memory;
  }
  return left;
}

MemoryFigures figures_of(const MemoryRun& run) {
  std::uint64_t huge = 0;
  for (const MarkSample& sample : run.marks) huge = std::max(huge, sample.memory.huge_page_bytes);
  return {.start = run.start_bytes,
          .peak = run.peak_bytes(),
          .mean = run.mean_bytes(),
          .end = run.end_bytes(),
          .before_teardown = run.before_teardown_bytes(),
          .fragmentation = run.fragmentation(),
          .huge_pages = huge,
          .zeros = run.zero_bytes};
}

std::string huge_pages_text(std::uint64_t huge, const std::optional<std::uint64_t>& zeros) {
  return output::bytes_text(huge) + (zeros ? ", " + output::bytes_text(*zeros) + " zeros" : "");
}

double median_memory(const std::vector<MemoryFigures>& runs, std::uint64_t MemoryFigures::*figure) {
  std::vector<double> samples;
  for (const MemoryFigures& run : runs) samples.push_back(static_cast<double>(run.*figure));
  return samples.empty() ? LatencySummary::none : median_of(samples);
}

Spread spread_of(const AllocatorResult& result, std::uint64_t TimedSample::*figure) {
  std::vector<std::uint64_t> values;
  for (const TimedSample& sample : result.timed) values.push_back(sample.*figure);
  return spread_of(std::move(values));
}

std::string memory_fault(const ReplaySettings& settings, const std::vector<Allocator>& allocators, bool verifies) {
  const bool touches = verifies || settings.options.touch == "page" || settings.options.touch == "all";
  const auto is_null = [](const Allocator& allocator) { return allocator.null; };
  const bool only_null = std::all_of(allocators.begin(), allocators.end(), is_null);
  const TracePlan& plan = settings.trace.plan();
  const std::uint64_t touched = touches && !only_null ? plan.facts.peak_touched_bytes : 0;
  const std::uint64_t needed = touched + plan.slots * sizeof(void*);
  const std::uint64_t available = process::available_memory_bytes();
  if (available == 0 || needed <= available) return "";
  return "needs " + output::bytes_text(needed) + " of memory, and " + output::bytes_text(available) +
         " are available: not replayed; --touch=first needs less, --force tries it nevertheless";
}

ReplayResults run_all(const ReplaySettings& settings, const std::vector<Allocator>& allocators, const Allocator& null,
                      const Progress& progress) {
  ReplayResults results;
  for (const Allocator& allocator : allocators) results.allocators.push_back({.allocator = allocator});
  const auto is_null = [](const AllocatorResult& result) { return result.allocator.null; };
  if (std::none_of(results.allocators.begin(), results.allocators.end(), is_null))
    results.allocators.push_back({.allocator = null, .is_asked = false});
  std::mt19937 random(settings.options.seed);
  std::vector<std::size_t> order(results.allocators.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto settled = [](const AllocatorResult& result) { return result.is_settled; };
  try {
    while (!std::all_of(results.allocators.begin(), results.allocators.end(), settled)) {
      std::shuffle(order.begin(), order.end(), random);
      run_round(settings, results, order, progress);
    }
    results.processors = std::max(1U, std::thread::hardware_concurrency());
    if (getloadavg(&results.load_average, 1) < 1) results.load_average = 0;
    run_further(settings, results, progress);
  } catch (const Interrupted&) {
    results.interrupted = true;
  }
  results.baseline = *std::find_if(results.allocators.begin(), results.allocators.end(), is_null);
  results.allocators.resize(allocators.size());
  return results;
}

}  // namespace cmt::replay
