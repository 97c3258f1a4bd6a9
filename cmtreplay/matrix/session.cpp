// Runs all allocators of a trace in the same rounds, and measures memory again if it looks worse.
#include "cmtreplay/matrix/session.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <random>
#include <stdexcept>

#include "cmtreplay/plan/trace_source.h"
#include "cmtreplay/report/verification.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

/// A number that no other session has.
std::string session_name() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const unsigned number = device() & 0xffff;
    for (int shift = 12; shift >= 0; shift -= 4) text += "0123456789abcdef"[number >> shift & 15];
  }
  return text;
}

/// The allocators of a session: the reference first, and each once.
std::vector<Allocator> allocators_of(const MatrixPlan& plan, std::span<const std::size_t> cells) {
  std::vector<Allocator> allocators{plan.reference};
  for (const std::size_t cell : cells) {
    const Allocator& allocator = plan.allocators[plan.allocator_of(cell)];
    if (allocator.name != plan.reference.name) allocators.push_back(allocator);
  }
  return allocators;
}

const AllocatorResult& result_of(const ReplayResults& results, const Allocator& allocator) {
  if (allocator.null) return results.baseline;
  return *std::find_if(results.allocators.begin(), results.allocators.end(),
                       [&](const AllocatorResult& result) { return result.allocator.name == allocator.name; });
}

template <class Figure>
bool is_above(const std::vector<MemoryFigures>& runs, const std::vector<MemoryFigures>& than, double share,
              Figure figure) {
  double least = INFINITY, most = -INFINITY;
  for (const MemoryFigures& run : runs) least = std::min(least, figure(run));
  for (const MemoryFigures& run : than) most = std::max(most, figure(run));
  return std::isfinite(least) && std::isfinite(most) && least > most && least >= most * (1 + share / 2);
}

/// By chance three runs are above three others once in 20 times, and ten above ten others once in 184,756. So a figure
/// that looks worse is measured until there are ten runs.
void confirm_memory(const ReplaySettings& settings, ReplayResults& results, double share) {
  constexpr std::uint32_t wanted = 10;
  AllocatorResult& reference = results.allocators.front();
  const auto add_runs = [&](AllocatorResult& result) {
    while (result.memory_runs.size() < wanted) {
      const auto number = static_cast<std::uint32_t>(result.memory_runs.size());
      result.memory_runs.push_back(figures_of(run_memory(settings, result.allocator, results.memory_baseline, number)));
    }
  };
  for (AllocatorResult& result : results.allocators) {
    if (&result == &reference || result.death || reference.death || !results.memory_baseline) continue;
    const auto peak = [](const MemoryFigures& run) { return static_cast<double>(run.peak); };
    const auto mean = [](const MemoryFigures& run) { return static_cast<double>(run.mean); };
    const auto fragmentation = [](const MemoryFigures& run) { return run.fragmentation; };
    const auto looks_worse = [&](auto figure) {
      return is_above(result.memory_runs, reference.memory_runs, share, figure);
    };
    if (!looks_worse(peak) && !looks_worse(mean) && !looks_worse(fragmentation)) continue;
    try {
      add_runs(result);
    } catch (const Death& death) {
      result.death = death;
      continue;
    }
    try {
      add_runs(reference);
    } catch (const Death& death) {
      reference.death = death;
    }
  }
}

/// Whether something else has killed the worker: a person, or the kernel because memory was short. Such a death says
/// nothing about the allocator.
bool is_killed(const std::optional<Death>& death) { return death && death->ending.signal == SIGKILL && !death->hung(); }

void refuse_killed(Cell& cell, const std::string& allocator) {
  cell.outcome = outcomes::not_replayed;
  cell.reason = cell.trace.name + ": " + allocator + ": the worker was killed, perhaps as memory was short: not stored";
  cell.verification.reset();
}

void add_all(std::vector<Warning>& list, const std::vector<Warning>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

void describe_trace(CellTrace& cell, const TracePlan& plan) {
  cell.events = plan.facts.events;
  cell.calls = plan.facts.calls;
  cell.threads = plan.counts.threads;
  cell.peak_live_bytes = plan.facts.peak_live.bytes;
  cell.truncated = plan.facts.truncated;
}

void verify(const ReplaySettings& settings, const Allocator& allocator, Cell& cell) {
  constexpr std::size_t findings_max = 20;
  cell.outcome = outcomes::verified;
  if (allocator.null) {
    cell.outcome = outcomes::not_replayed;
    cell.reason = "null hands out no memory";
    cell.verification.reset();
    return;
  }
  const Verification verified = run_verification(settings, allocator);
  if (is_killed(verified.death)) return refuse_killed(cell, allocator.name);
  const bool is_counted = !verified.death || !verified.fatal_call.empty();
  cell.verification = CellVerification{.faults = verified.faults + (is_counted ? 0 : 1)};
  cell.refused_calls = verified.refused_calls;
  for (const Finding& finding : verified.findings) {
    if (cell.verification->findings.size() < findings_max) cell.verification->findings.push_back(finding.sentence());
  }
  if (verified.checked_nothing())
    cell.reason = verified.refused_all_text();
  else if (verified.death)
    cell.reason = "died " + verified.death->place(settings.trace.plan().facts.events) + ": " + verified.death->text();
  else
    return;
  std::vector<std::string>& findings = cell.verification->findings;  // the board shows the first one
  findings.insert(verified.death ? findings.end() : findings.begin(), *cell.reason);
}

void measure(const MatrixPlan& plan, std::span<const std::size_t> cells, const ReplaySettings& replay,
             const MatrixSettings& settings, const ReplayResults& results, std::vector<Cell>& filled) {
  const std::uint64_t events = replay.trace.plan().facts.events;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const AllocatorResult& result = result_of(results, plan.allocators[plan.allocator_of(cells[i])]);
    fill_cell(filled[i], result, results.allocators.front(), results.baseline, events);
    filled[i].is_crowded = more_threads_than_cpus(replay.trace, replay.options);
    add_all(*filled[i].warnings, allocator_warnings(result, replay.trace.plan().facts, replay.options));
    add_all(*filled[i].warnings, table_warnings(result, replay.options));
    const AllocatorResult& reference = results.allocators.front();
    if (is_killed(result.death) || is_killed(reference.death))
      refuse_killed(filled[i], is_killed(result.death) ? result.allocator.name : reference.allocator.name);
    else if (result.death)
      settings.remark(filled[i].trace.name + ": " + result.allocator.name + ": died " + *filled[i].reason);
  }
}

}  // namespace

bool run_session(const MatrixPlan& plan, const TraceFile& file, std::span<const std::size_t> cells,
                 const MatrixSettings& settings, const std::function<void(const std::string&, double)>& show,
                 std::vector<Cell>& results) {
  show("reading", 0);
  TraceSource source(file.path);
  const PreparedTrace trace = prepare(source, settings.trace, [](std::uint64_t, std::uint64_t) {});
  if (trace.plan().facts.calls == 0) throw std::runtime_error(file.path + ": has no calls to replay");
  const bool has_times = trace.plan().facts.recorded_ns != unknown;
  if (!has_times && settings.needs_times && (settings.options.pace > 0 || settings.options.clock == ClockRuns::all))
    throw std::runtime_error(file.path + ": has no recorded times (needed by --pace and --clock=recorded)");
  const ReplaySettings replay{
      .worker = settings.worker, .trace = trace, .interrupts = settings.interrupts, .options = settings.options};
  const std::vector<Allocator> allocators = allocators_of(plan, cells);
  const std::string fault = settings.force ? "" : memory_fault(replay, allocators, settings.verifies);
  if (!fault.empty()) throw std::runtime_error(file.path + ": " + fault);
  const std::string session = session_name();
  for (Cell& cell : results) {
    describe_trace(cell.trace, trace.plan());
    cell.session = session;
    cell.warnings = trace_warnings(trace, file.path);
    if (!has_times && !settings.needs_times)
      cell.warnings->push_back({std::string(no_times_warning), file.name + ": " + std::string(no_times_warning)});
    if (!settings.verifies) add_all(*cell.warnings, memory_warnings(trace, settings.options));
  }
  try {
    if (settings.verifies) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const Allocator& allocator = plan.allocators[plan.allocator_of(cells[i])];
        show(allocator.name + ", verifying", static_cast<double>(i) / static_cast<double>(cells.size()));
        verify(replay, allocator, results[i]);
        add_all(*results[i].warnings, emulation_warnings(allocator, trace.plan().facts));
      }
      return true;
    }
    ReplayResults all = run_all(replay, allocators, plan.null,
                                [&](const std::string& step, const RunsLeft& left) { show(step, left.share()); });
    if (all.interrupted) return false;
    if (settings.confirm_memory >= 0) confirm_memory(replay, all, settings.confirm_memory);
    measure(plan, cells, replay, settings, all, results);
  } catch (const Interrupted&) {
    return false;
  }
  return true;
}

}  // namespace cmt::replay
