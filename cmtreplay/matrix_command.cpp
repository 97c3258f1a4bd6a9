// The commands for many traces: plans the matrix, runs the wanted cells that are not there yet, and shows the board.
#include "cmtreplay/matrix_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cmtreplay/board_command.h"
#include "cmtreplay/matrix/cell_store.h"
#include "cmtreplay/matrix/matrix.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::replay {
namespace {

constexpr const char* reference_name = "libc";

bool is_gate(const Options& options) { return !options.matrix.limits.empty(); }

/// Sets the defaults of a gate or of a suite for options that are not given.
Options with_plan(Options options) {
  if (is_gate(options)) {
    options.latency_runs = 0;
    options.stops_when_known = false;  // as many pairs as the budget allows
    options.rounds_max = 60;
    if (!options.has_runs) options.budget_ns = 5'000'000'000;
    if (!options.matrix.baseline.empty()) options.memory_runs = 5;
    return options;
  }
  if (options.matrix.suite.empty() || options.has_runs) return options;
  const bool is_quick = options.matrix.suite == "quick";
  options.runs = is_quick ? 5 : 10;
  options.memory_runs = is_quick ? 1 : 3;
  options.latency_runs = 1;
  return options;
}

/// Refuses to judge a build by itself: it would never be worse.
void check_builds_differ(const MatrixPlan& plan) {
  const Allocator& old = plan.reference;
  for (const Allocator& allocator : plan.allocators) {
    std::error_code ignored;
    if (allocator.settings == old.settings && allocator.prefix == old.prefix &&
        std::filesystem::equivalent(allocator.library, old.library, ignored))
      throw command::UsageError("--against and --alloc name the same file");
  }
}

MatrixPlan make_plan(AllocatorFinder& finder, const Options& options, const MatrixSettings& settings) {
  MatrixPlan plan{.traces = options.matrix.suite.empty() ? find_traces(options.matrix.traces)
                                                         : find_suite(options.matrix.suite == "quick"),
                  .allocators = {},
                  .reference = finder.find(options.matrix.against.empty() ? reference_name : options.matrix.against),
                  .null = finder.find("null")};
  std::set<std::string> names;
  for (Allocator& allocator : finder.find_all(options.allocators)) {
    if (names.insert(allocator.name).second) plan.allocators.push_back(std::move(allocator));
  }
  if (!options.matrix.against.empty()) check_builds_differ(plan);
  plan_cells(plan, settings);
  return plan;
}

/// The share by which memory may grow before it is measured again; -1: memory is not judged.
double memory_share(const std::vector<command::Limit>& limits) {
  double least = -1;
  for (const command::Limit& limit : limits) {
    if (limit.figure != "time" && (least < 0 || limit.share < least)) least = limit.share;
  }
  return least;
}

std::string tasks_text(const MatrixPlan& plan, const CellStore& store) {
  std::string text;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    text += std::to_string(i + 1) + "\t" + (store.has_place(cell) ? "done" : "open") + "\t" +
            text::to_line(cell.trace.name) + "\t" + text::to_line(cell.allocator.name) + "\n";
  }
  return text;
}

/// The cells to run: those of --task, or all, without those that are there.
std::vector<std::size_t> wanted_cells(const MatrixPlan& plan, const TaskRange& tasks, const CellStore* store) {
  const std::size_t first = tasks.last == 0 ? 0 : tasks.first - 1;
  const std::size_t last = tasks.last == 0 ? plan.cells.size() : tasks.last;
  if (last > plan.cells.size())
    throw command::UsageError("--task is a number up to " + std::to_string(plan.cells.size()) + ", not " +
                              std::to_string(last));
  std::vector<std::size_t> wanted;
  for (std::size_t i = first; i < last; ++i) {
    if (!store || !store->has(plan.cells[i])) wanted.push_back(i);
  }
  return wanted;
}

/// Runs cells, and keeps them in a folder or in memory.
class CellRunner {
 public:
  CellRunner(const MatrixPlan& plan, CellStore* store) : plan_(plan), store_(store) {}

  void keep(Cell cell) {
    if (cell.outcome == outcomes::not_replayed) {
      if (problems_.insert(*cell.reason).second) command::complain("cmtreplay", *cell.reason);
    } else if (store_) {
      if (store_->store(cell))
        ++stored_;
      else
        ++there_already_;
      return;  // all cells are read back from the folder
    }
    cells_.push_back(std::move(cell));
  }

  /// All cells so far, in memory and in the folder.
  ReadCells take_cells() {
    ReadCells all;
    if (store_) all = store_->read();
    all.cells.insert(all.cells.begin(), cells_.begin(), cells_.end());
    return all;
  }

  void say_interrupted() const {
    if (!store_) return command::complain("cmtreplay", "interrupted; --results=DIR would keep what is done");
    std::size_t done = 0;
    for (const Cell& cell : plan_.cells) done += store_->has(cell) ? 1 : 0;
    command::complain("cmtreplay", "interrupted; " + std::to_string(done) + " of " +
                                       output::counted(plan_.cells.size(), "cell") + " are in " + store_->folder() +
                                       "; the same command goes on with the others");
  }

  bool has_problems() const { return !problems_.empty(); }
  std::string task_text(std::size_t wanted, std::size_t asked) const {
    return output::counted(stored_, "cell") + " done, " + std::to_string(asked - wanted + there_already_) +
           " there already, of " + std::to_string(asked) + "\n";
  }

 private:
  const MatrixPlan& plan_;
  CellStore* store_;
  std::vector<Cell> cells_;
  std::set<std::string> problems_;
  std::uint64_t stored_ = 0, there_already_ = 0;
};

/// Opens the folder of --results. Damaged files are reported at once, and cells that are wanted are measured again.
std::optional<CellStore> open_store(const Options& options) {
  std::optional<CellStore> store;
  if (options.matrix.results.empty()) return store;
  store.emplace(options.matrix.results);
  complain_of(store->read().damaged, ": counts as missing");
  return store;
}

/// Reads the cells of --baseline.
std::vector<Cell> read_baseline(const Options& options) {
  if (options.matrix.baseline.empty()) return {};
  ReadCells read = read_cells(options.matrix.baseline);
  complain_of(read.damaged, ": counts as missing");
  return std::move(read.cells);
}

int run_plan(const MatrixPlan& plan, MatrixSettings settings, const Options& options, terminal::LiveView& line) {
  BoardFile file(options.plot);
  const std::vector<Cell> baseline = read_baseline(options);
  std::optional<CellStore> store = open_store(options);
  if (options.matrix.lists_tasks) return command::print(tasks_text(plan, *store)), 0;
  const TaskRange& tasks = options.matrix.tasks;
  const std::vector<std::size_t> wanted = wanted_cells(plan, tasks, store ? &*store : nullptr);
  CellRunner runner(plan, store ? &*store : nullptr);
  settings.keep = [&](Cell cell) {
    line.clear();
    runner.keep(std::move(cell));
  };
  const bool is_whole = run_cells(plan, wanted, settings);
  line.clear();
  if (!is_whole) runner.say_interrupted();
  if (tasks.last != 0) {
    command::print(runner.task_text(wanted.size(), tasks.last - tasks.first + 1));
    return is_whole && !runner.has_problems() ? 0 : 1;
  }
  ReadCells all = runner.take_cells();
  Board board = make_board(std::move(all.cells), plan.cells);
  for (const DamagedFile& damaged : all.damaged) board.damaged.push_back(damaged.fault);
  if (is_gate(options) && is_whole) return show_gate(std::move(board), baseline, options, file);
  return show_board(board, options, file) == 0 && is_whole ? 0 : 1;
}

}  // namespace

int run_matrix_command(const Options& given, std::optional<command::Interrupts>& interrupts) {
  const Options with_defaults = with_plan(given);
  if (!given.matrix.scoreboard.empty() && given.matrix.traces.empty() && given.matrix.suite.empty()) {
    BoardFile file(given.plot);
    return show_scoreboard({}, with_defaults, file);
  }
  Options options = with_defaults;
  AllocatorFinder finder(find_worker(), options.prefix, options.timeout_seconds);
  interrupts.emplace();
  terminal::LiveView line(STDERR_FILENO);
  MatrixSettings settings{.worker = find_worker(),
                          .options = options,
                          .trace = options.trace,
                          .interrupts = *interrupts,
                          .verifies = options.verify,
                          .is_gate = is_gate(options),
                          .force = options.force};
  if (!options.matrix.against.empty()) settings.confirm_memory = memory_share(options.matrix.limits);
  settings.show = [&line](const std::string& text) { line.show({text}); };
  settings.remark = [&line](const std::string& text) {
    line.clear();
    command::complain("cmtreplay", text);
  };
  const MatrixPlan plan = make_plan(finder, options, settings);
  if (!options.matrix.against.empty()) {
    const std::size_t figures = figure_count(plan.traces.size(), plan.allocators.size(), options.matrix.limits);
    options.rounds_min = std::max(options.rounds_min, rounds_needed(figures));
  }
  if (!options.matrix.scoreboard.empty()) {
    BoardFile file(options.plot);
    return show_scoreboard(plan.cells, options, file);
  }
  return run_plan(plan, settings, options, line);
}

}  // namespace cmt::replay
