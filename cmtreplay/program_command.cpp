// Runs the program first, and then the replays of its trace as cells of one session.
#include "cmtreplay/program_command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "cmtreplay/matrix/matrix.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::replay {
namespace {

constexpr unsigned default_runs = 10, least_rounds = 3;

std::vector<Prediction> predict(const Options& given, const std::vector<Allocator>& allocators, AllocatorFinder& finder,
                                const command::Interrupts& interrupts, terminal::LiveView& line) {
  Options options = given;
  options.latency_runs = 0;
  if (options.runs == 0) options.runs = default_runs;
  std::vector<Prediction> predictions;
  MatrixSettings settings{.worker = find_worker(),
                          .options = options,
                          .trace = options.trace,
                          .interrupts = interrupts,
                          .force = options.force,
                          .needs_times = false};
  settings.show = [&line](const std::string& step) { line.show({step}); };
  settings.keep = [&predictions](const Cell& cell) {
    if (cell.outcome == outcomes::not_replayed) throw command::UsageError(*cell.reason);
    predictions.push_back(prediction_of(cell));
  };
  MatrixPlan plan{.traces = find_traces(options.matrix.traces),
                  .allocators = allocators,
                  .reference = allocators.front(),
                  .null = finder.find("null")};
  plan_cells(plan, settings);
  if (plan.cells.size() != allocators.size()) throw std::runtime_error("two of --alloc are the same build");
  std::vector<std::size_t> all(plan.cells.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (!run_cells(plan, all, settings)) throw Interrupted();
  return predictions;
}

}  // namespace

ProgramReport run_in_rounds(const Options& options, const std::vector<Allocator>& allocators,
                            const command::Interrupts& interrupts, terminal::LiveView& line, double seconds) {
  ProgramReport report{.command = options.program.command, .reference = allocators.front().name};
  for (const Allocator& allocator : allocators) report.rows.push_back({.name = allocator.name});
  const unsigned rounds = options.runs == 0 ? default_runs : options.runs;
  std::vector<std::size_t> order(allocators.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(options.seed);
  const std::int64_t begin_ns = process::now_ns();
  const auto is_late = [&] { return 1e-9 * static_cast<double>(process::now_ns() - begin_ns) > seconds; };
  for (unsigned round = 0; round < rounds && (round < least_rounds || !is_late()); ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      line.show({"round " + std::to_string(round + 1) + " of " + std::to_string(rounds) + ": " + allocators[i].name});
      report.rows[i].runs.push_back(run_program(options.program, allocators[i], interrupts));
    }
  }
  line.clear();
  return report;
}

std::optional<std::uint64_t> recorded_ns(const Options& options) {
  const std::vector<std::string>& traces = options.matrix.traces;  // which may be folders
  if (traces.size() != 1 || options.program.is_server() || !std::filesystem::is_regular_file(traces.front()))
    return std::nullopt;
  Reader reader = command::open_trace(traces.front(), {.addresses = false, .usable = false});
  std::uint64_t last = 0;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) {
      if (event.time_ns != unknown) last = event.time_ns;
    }
  }
  last = std::max(last, command::recorded_ns(reader.header(), reader.stretches()));  // it may idle before it ends
  return last == 0 ? std::nullopt : std::optional(last);
}

int run_program_command(const Options& options, std::optional<command::Interrupts>& interrupts) {
  AllocatorFinder finder(find_worker(), "", options.timeout_seconds);
  const std::vector<Allocator> allocators = finder.find_all(options.allocators);
  interrupts.emplace();
  terminal::LiveView line(STDERR_FILENO);
  ProgramReport report = run_in_rounds(options, allocators, *interrupts, line);
  std::vector<Prediction> predictions;
  if (!options.matrix.traces.empty()) predictions = predict(options, allocators, finder, *interrupts, line);
  line.clear();
  report.recorded_ns = recorded_ns(options);
  fill_rows(report, predictions);
  command::print(options.json ? output::json_text(report) : program_text(report));
  return has_runs_of_all(report) ? 0 : 1;
}

}  // namespace cmt::replay
