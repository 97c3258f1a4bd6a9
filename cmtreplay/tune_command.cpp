// Measures the candidates of a search (tune/search.h) as cells of a matrix, and reports what to set.
//
// Each candidate is a column of the matrix, under the name that --alloc takes. So its cell has ratios to the default
// from the same rounds. With --results each cell is a file: the same command continues an interrupted search, and
// processes of a cluster share the cells of a stage (--tasks). Later stages depend on the cells of earlier ones, and on
// the decisions of the clock, which are kept beside them (tune/decisions.h).
#include "cmtreplay/tune_command.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cmtreplay/board_command.h"
#include "cmtreplay/matrix/cell_store.h"
#include "cmtreplay/matrix/matrix.h"
#include "cmtreplay/matrix/session.h"
#include "cmtreplay/program_command.h"
#include "cmtreplay/tune/decisions.h"
#include "cmtreplay/tune/search.h"
#include "cmtreplay/tune/tune_report.h"
#include "cmtreplay/tune/understood.h"
#include "libcmt/text/utf8.h"
#include "toolkit/files/sha256.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::replay {
namespace {

/// Thrown when the cells of a stage have been listed or run, as --tasks and --task ask for.
struct TasksDone {
  int status;
};

/// The cells of all stages, in memory and in the folder of --results.
class CellPool {
 public:
  explicit CellPool(const std::string& folder) {
    if (folder.empty()) return;
    store_.emplace(folder);
    ReadCells read = store_->read();
    complain_of(read.damaged, ": counts as missing");
    for (Cell& cell : read.cells) add(std::move(cell));
  }

  const Cell* find(const Cell& planned) const {
    const auto found = cells_.find(cell_key(planned));
    return found == cells_.end() ? nullptr : &found->second;
  }
  /// Throws std::runtime_error if the trace could not be replayed.
  void keep(Cell cell) {
    if (cell.outcome == outcomes::not_replayed) throw std::runtime_error(*cell.reason);
    if (store_) store_->store(cell);
    add(std::move(cell));
  }
  bool is_stored() const { return store_.has_value(); }

  /// The decisions of all searches whose files have this name, for any budget.
  std::vector<SearchDecisions> read_decisions(const std::string& name) const {
    std::vector<SearchDecisions> kept;
    if (!store_) return kept;
    for (const auto& entry : std::filesystem::directory_iterator(store_->folder())) {
      const std::string path = entry.path().string(), file = entry.path().filename().string();
      if (!file.starts_with(name) || !file.ends_with(decisions_ending)) continue;
      if (std::optional<SearchDecisions> decisions = parse_decisions(process::read_file(path)))
        kept.push_back(std::move(*decisions));
      else
        complain_of({{path, path + ": not the decisions of a search"}}, ": counts as missing");
    }
    return kept;
  }
  void keep(const std::string& name, const SearchDecisions& decisions) {
    std::string text = decisions_text(decisions);
    if (!store_ || text == kept_text_) return;
    store_->store_other(name + std::to_string(decisions.budget_ms) + "ms" + decisions_ending, text);
    kept_text_ = std::move(text);
  }

 private:
  static constexpr const char* decisions_ending = ".decisions";

  void add(Cell cell) {
    std::string key = cell_key(cell);
    cells_.insert_or_assign(std::move(key), std::move(cell));
  }

  std::optional<CellStore> store_;
  std::map<std::string, Cell> cells_;
  std::string kept_text_;
};

/// Measures candidates as cells, and fills in the report.
class Tuner : public Meter {
 public:
  Tuner(const Options& options, const command::Interrupts& interrupts)
      : options_(options),
        interrupts_(interrupts),
        worker_(find_worker()),
        finder_(worker_, "", options.timeout_seconds),
        traces_(options.matrix.suite.empty() ? find_traces(options.matrix.traces)
                                             : find_suite(options.matrix.suite == "quick")),
        pool_(options.matrix.results),
        null_(finder_.find("null")) {
    for (Allocator& allocator : finder_.find_all(options.allocators)) {
      candidates_.push_back({.allocator = allocator.name});
      bases_.emplace(allocator.name, std::move(allocator));
    }
    report_.reference = candidates_.front().allocator;
    report_.machine = this_machine();
    search_name_ = search_name();
    const double milliseconds = std::round(1000 * search_seconds());
    decisions_ = decisions_for(pool_.read_decisions(search_name_), static_cast<std::uint64_t>(milliseconds));
  }

  TuneReport run() {
    DecidedMeter meter(*this, decisions_, [this] {
      if (!has_tasks()) pool_.keep(search_name_, decisions_);
    });
    const SearchResult result = search(candidates_, options_.tune.aims, meter);
    line_.clear();
    const bool is_whole = result.all.size() >= result.asked;
    decisions_.end = is_whole ? SearchEnd::whole : SearchEnd::early;
    pool_.keep(search_name_, decisions_);
    if (has_tasks()) do_none();
    fill_report(result);
    return std::move(report_);
  }

  /// Reports the allocators of the command line that refused calls. Returns whether one crashed or hung, which was
  /// reported as it did.
  bool report_failed() const {
    bool has_crashed = false;
    for (const Candidate& plain : candidates_) {
      for (const Cell& cell : cells_.at(plain.name())) {
        has_crashed = has_crashed || cell.outcome == outcomes::died || cell.outcome == outcomes::hung;
        if (cell.outcome == outcomes::refused)
          command::complain("cmtreplay", cell.trace.name + ": " + plain.allocator + ": " + cell.reason.value_or(""));
      }
    }
    return has_crashed;
  }

  bool is_stored() const { return pool_.is_stored(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double search_share = 0.7;  // of the budget, if there is a program to run

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  /// The program of --command gets the rest of the budget.
  double search_seconds() const {
    return options_.tune.budget_seconds * (options_.program.command.empty() ? 1 : search_share);
  }
  bool has_tasks() const { return options_.matrix.lists_tasks || options_.matrix.tasks.last != 0; }

  /// The same for each search of these traces, allocators, options and aims by this build, whatever the budget.
  std::string search_name() const {
    const Options options = options_of(1);
    const MatrixPlan plan = plan_of(candidates_, settings_of(options));
    std::string key;
    for (const Cell& cell : plan.cells) key += cell_key(cell) + "\n";
    for (const Aim aim : options_.tune.aims) key += name_of(aim) + "\n";
    return "tune-" + files::sha256(key).substr(0, 8) + "-";
  }

  MatrixSettings settings_of(const Options& options) const {
    return {.worker = worker_,
            .options = options,
            .trace = options.trace,
            .interrupts = interrupts_,
            .force = options.force,
            .needs_times = false};
  }

  Allocator allocator_of(const Candidate& candidate) const {
    Allocator allocator = bases_.at(candidate.allocator);
    allocator.name = candidate.name();
    allocator.settings = candidate.environment();
    return allocator;
  }

  /// The candidates with one setting that the installed library does not ignore.
  std::vector<Candidate> singles_of(const Candidate& plain) override {
    std::vector<Candidate> singles;
    for (Candidate& single : single_choices(plain.allocator, kind_of(bases_.at(plain.allocator)))) {
      std::string ignored, unknown;
      for (const SettingAnswer& answer : ask_settings(worker_, allocator_of(single), options_.timeout_seconds)) {
        if (answer.understood == Understood::no) ignored = answer.reason;
        if (answer.understood == Understood::unknown) unknown = answer.reason;
      }
      if (!ignored.empty()) {
        report_.ignored.push_back({single.title(), ignored});
      } else if (single.is_by_clock() && !report_.without_times.empty()) {
        report_.left_out.push_back({single.title(), "gives memory back after a time, and the trace has no times"});
      } else {
        if (!unknown.empty()) report_.unknown.push_back({single.title(), unknown});
        singles.push_back(std::move(single));
      }
    }
    return singles;
  }

  MatrixPlan plan_of(const std::vector<Candidate>& candidates, const MatrixSettings& settings) const {
    MatrixPlan plan{.traces = traces_, .allocators = {}, .reference = bases_.at(report_.reference), .null = null_};
    for (const Candidate& candidate : candidates) plan.allocators.push_back(allocator_of(candidate));
    plan_cells(plan, settings);
    assert(plan.allocators.size() == candidates.size());
    return plan;
  }

  std::vector<std::size_t> missing_of(const MatrixPlan& plan) const {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < plan.cells.size(); ++i) {
      if (!pool_.find(plan.cells[i])) missing.push_back(i);
    }
    return missing;
  }

  /// The work of a session: timed runs, and memory runs, which take about twice as long. The default and the null
  /// allocator run too.
  static double units(std::size_t candidates, const Options& options) {
    return static_cast<double>(candidates + 2) * (options.runs + 2.0 * std::min(options.runs, options.memory_runs));
  }

  std::size_t affordable(unsigned runs, double share) override {
    if (decisions_.units == 0 || has_tasks()) return SIZE_MAX;  // nothing had to be run
    const double left = share * search_seconds() - seconds();
    const double count = left * decisions_.units / decisions_.run_seconds / units(1, options_of(runs)) * 3 - 2;
    return static_cast<std::size_t>(std::clamp(count, 0.0, 1e6));
  }

  /// A candidate of few runs has one memory run: memory varies little.
  Options options_of(unsigned runs) const {
    Options options = options_;
    options.runs = runs;
    options.latency_runs = 0;
    if (runs < 10) options.memory_runs = 1;
    return options;
  }

  void run_missing(const MatrixPlan& plan, const std::vector<std::size_t>& missing, MatrixSettings settings,
                   const std::string& stage) {
    const double before = seconds();
    settings.show = [&](const std::string& step) { line_.show({stage + ": " + step}); };
    settings.remark = [this](const std::string& text) {
      line_.clear();
      command::complain("cmtreplay", text);
    };
    settings.keep = [this](Cell cell) { pool_.keep(std::move(cell)); };
    const bool is_whole = run_cells(plan, missing, settings);
    line_.clear();
    if (!is_whole) throw Interrupted();
    decisions_.units += units(missing.size(), options_of(settings.options.runs));
    decisions_.run_seconds += seconds() - before;
  }

  /// Lists or runs the cells of this stage if --tasks or --task asks for them and some are missing.
  void do_tasks(const MatrixPlan& plan, const std::vector<std::size_t>& missing, const MatrixSettings& settings,
                const std::string& stage) {
    if (!has_tasks() || missing.empty()) return;
    const TaskRange& tasks = options_.matrix.tasks;
    const auto is_missing = [&](std::size_t i) { return std::binary_search(missing.begin(), missing.end(), i); };
    if (options_.matrix.lists_tasks) {
      std::string text;
      for (std::size_t i = 0; i < plan.cells.size(); ++i)
        text += std::to_string(i + 1) + "\t" + (is_missing(i) ? "open" : "done") + "\t" +
                text::to_line(plan.cells[i].trace.name) + "\t" + text::to_line(plan.cells[i].allocator.name) + "\n";
      command::print(text);
      throw TasksDone{0};
    }
    if (tasks.last > plan.cells.size())
      throw command::UsageError("--task is a number up to " + std::to_string(plan.cells.size()) + ", not " +
                                std::to_string(tasks.last));
    std::vector<std::size_t> wanted;
    for (std::size_t i = tasks.first - 1; i < tasks.last; ++i) {
      if (is_missing(i)) wanted.push_back(i);
    }
    run_missing(plan, wanted, settings, stage);
    command::print(stage + ": " + output::counted(wanted.size(), "cell") + " done\n");
    throw TasksDone{0};
  }

  /// --tasks lists nothing once the search has ended, so that a script that repeats it ends.
  [[noreturn]] void do_none() const {
    if (!options_.matrix.lists_tasks) command::print("the search has ended: no cell is open\n");
    throw TasksDone{0};
  }

  std::vector<Measured> measure(const std::string& stage, const std::vector<Candidate>& candidates, unsigned runs,
                                double share) override {
    constexpr std::size_t batch = 8;  // in one session; after each the budget is looked at
    const Options options = options_of(runs);
    const MatrixSettings settings = settings_of(options);
    if (has_tasks() && !candidates.empty()) {
      const MatrixPlan plan = plan_of(candidates, settings);
      do_tasks(plan, missing_of(plan), settings, stage);
    }
    std::vector<Measured> all;
    for (std::size_t begin = 0; begin < candidates.size(); begin += batch) {
      const std::vector<Candidate> some(
          candidates.begin() + static_cast<std::ptrdiff_t>(begin),
          candidates.begin() + static_cast<std::ptrdiff_t>(std::min(begin + batch, candidates.size())));
      const MatrixPlan plan = plan_of(some, settings);
      const std::vector<std::size_t> missing = missing_of(plan);
      const bool is_spent = seconds() > share * search_seconds();
      if (!missing.empty() && is_spent && share < 1) break;
      if (!missing.empty())
        run_missing(plan, missing, settings,
                    stage + ", " + std::to_string(begin) + " of " + std::to_string(candidates.size()) + " done");
      for (std::size_t i = 0; i < some.size(); ++i) all.push_back(measured_of(plan, some[i], i, runs));
      report_.timed_runs += some.size() * runs;
    }
    return all;
  }

  /// The figures of a candidate over all traces, whose cells are kept for the report.
  Measured measured_of(const MatrixPlan& plan, const Candidate& candidate, std::size_t column, unsigned runs) {
    Measured measured{.candidate = candidate, .runs = runs};
    std::vector<RatioSamples> times, peaks, means;
    std::vector<Cell>& cells = cells_[candidate.name()];
    cells.clear();
    for (std::size_t trace = 0; trace < traces_.size(); ++trace) {
      const Cell* const cell = pool_.find(plan.cells[trace * plan.allocators.size() + column]);
      assert(cell);
      cells.push_back(*cell);
      note_times(*cell);
      if (cell->reference_fault)
        throw std::runtime_error(cell->trace.name + ": " + cell->reference.name + ", the default, " +
                                 *cell->reference_fault);
      const std::string how = cell->outcome == outcomes::refused ? "" : cell->outcome + " ";  // a reason says "refused"
      if (!cell->is_measured()) measured.state = cell->trace.name + ": " + how + cell->reason.value_or("");
      times.push_back(time_samples(*cell));
      peaks.push_back(memory_samples(*cell, &MemoryFigures::peak));
      means.push_back(memory_samples(*cell, &MemoryFigures::mean));
    }
    measured.time = geometric_mean(times);
    measured.time_deviation = log_deviation(times);
    measured.peak = geometric_mean(peaks);
    measured.mean = geometric_mean(means);
    return measured;
  }

  void note_times(const Cell& cell) {
    for (const Warning& warning : cell.warnings.value_or(std::vector<Warning>())) {
      if (warning.kind == no_times_warning && std::find(report_.without_times.begin(), report_.without_times.end(),
                                                        cell.trace.name) == report_.without_times.end())
        report_.without_times.push_back(cell.trace.name);
    }
  }

  /// The figures of one candidate on one trace, as those of a search with this trace alone.
  Measured alone(const Measured& whole, std::size_t trace) const {
    const Cell& cell = cells_.at(whole.candidate.name())[trace];
    Measured one{.candidate = whole.candidate, .runs = whole.runs, .state = whole.state};
    one.time = ratio_of(time_samples(cell));
    one.peak = ratio_of(memory_samples(cell, &MemoryFigures::peak));
    return one;
  }

  std::vector<TunedLoss> losses_of(Aim aim, const Measured& recommended, const std::vector<Measured>& all) const {
    std::vector<TunedLoss> losses;
    for (std::size_t trace = 0; trace < traces_.size() && traces_.size() > 1; ++trace) {
      const Measured own = alone(recommended, trace);
      Measured best = own;
      for (const Measured& each : all) {
        const Measured other = alone(each, trace);
        if (each.runs == recommended.runs && other.is_measured() && score(aim, other) < score(aim, best)) best = other;
      }
      losses.push_back({.trace = traces_[trace].name,
                        .time = own.time.ratio,
                        .peak = own.peak.ratio,
                        .best = best.candidate.title(),
                        .best_time = best.time.ratio,
                        .best_peak = best.peak.ratio});
    }
    return losses;
  }

  void fill_report(const SearchResult& result) {
    report_.asked = result.asked - 1;  // without the default
    report_.seconds = seconds();
    report_.time_deviation = result.time_deviation;
    for (const Measured& each : result.all) {
      if (each.candidate == candidates_.front()) continue;  // the default has a line of its own
      const std::vector<Cell>& cells = cells_.at(each.candidate.name());
      TunedRow& row =
          report_.rows.emplace_back(TunedRow{.title = each.candidate.title(),
                                             .alloc = each.candidate.name(),
                                             .environment = each.candidate.environment(),
                                             .runs = each.runs,
                                             .time = each.time,
                                             .peak = each.peak,
                                             .mean = each.mean,
                                             .state = each.state.empty() ? std::nullopt : std::optional(each.state)});
      if (cells.size() == 1) row.figures = figures_of(cells.front().runs);
      if (cells.size() == 1) report_.default_figures = figures_of(cells.front().reference_runs);
      if (report_.traces.empty()) {
        for (const Cell& cell : cells) report_.traces.push_back(cell.trace);
      }
    }
    mark_best(report_.rows);
    const std::vector<Measured> finalists(result.all.end() - static_cast<std::ptrdiff_t>(result.finalists),
                                          result.all.end());
    std::map<Aim, Recommendation> recommendations;
    for (const Aim aim : options_.tune.aims) recommendations[aim] = recommend(aim, finalists);
    if (!options_.program.command.empty()) prove(recommendations, finalists);
    for (auto& [aim, recommendation] : recommendations) {
      for (const Measured& each : finalists) {
        if (recommendation.title != each.candidate.title()) continue;
        const Allocator allocator = allocator_of(each.candidate);
        recommendation.lines =
            setting_lines(allocator.preload.empty() ? "" : allocator.library, allocator.settings, "PROGRAM");
        recommendation.losses = losses_of(aim, each, result.all);
      }
      report_.recommendations.push_back(std::move(recommendation));
    }
  }

  /// Runs the real program with the default and each recommended candidate, and takes back recommendations that it
  /// does not confirm.
  void prove(std::map<Aim, Recommendation>& recommendations, const std::vector<Measured>& finalists) {
    std::vector<Allocator> allocators{bases_.at(report_.reference)};
    const auto of_default = cells_.find(candidates_.front().name());
    std::vector<Prediction> predictions{of_default == cells_.end() ? Prediction()
                                                                   : prediction_of(of_default->second.front())};
    std::map<std::string, std::size_t> rows;  // by the candidates' titles
    for (const Measured& each : finalists) {
      const std::string title = each.candidate.title();
      if (std::none_of(recommendations.begin(), recommendations.end(),
                       [&title](const auto& recommendation) { return recommendation.second.title == title; }))
        continue;
      rows[title] = allocators.size();
      allocators.push_back(allocator_of(each.candidate));
      predictions.push_back(prediction_of(cells_.at(each.candidate.name()).front()));
    }
    if (rows.empty()) return;
    const double left = options_.tune.budget_seconds - seconds();
    report_.program = run_in_rounds(options_, allocators, interrupts_, line_,
                                    std::max(left, (1 - search_share) * options_.tune.budget_seconds));
    report_.program->recorded_ns = traces_.size() == 1 ? recorded_ns(options_) : std::nullopt;
    if (traces_.size() > 1) predictions.clear();  // which of them is the command's is not known
    fill_rows(*report_.program, predictions);
    for (auto& [aim, recommendation] : recommendations) {
      if (!recommendation.title) continue;
      recommendation.is_unproved = report_.program->rows.front().good_runs() == 0;
      if (!recommendation.is_unproved)
        confirm(aim, recommendation, report_.program->rows[rows.at(*recommendation.title)]);
    }
  }

  const Options& options_;
  const command::Interrupts& interrupts_;
  std::string worker_;
  AllocatorFinder finder_;
  std::vector<TraceFile> traces_;
  CellPool pool_;
  Allocator null_;
  std::vector<Candidate> candidates_;               ///< without settings, the default first
  std::map<std::string, Allocator> bases_;          ///< by name
  std::map<std::string, std::vector<Cell>> cells_;  ///< of each candidate by its name: its last ones, one a trace
  TuneReport report_;
  std::string search_name_;
  SearchDecisions decisions_;
  terminal::LiveView line_{STDERR_FILENO};
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

int run_tune_command(const Options& options, std::optional<command::Interrupts>& interrupts) {
  Tuner tuner(options, interrupts.emplace());
  try {
    const TuneReport report = tuner.run();
    command::print(options.json ? output::json_text(report) : options.csv ? tune_csv(report) : tune_text(report));
    const bool is_proved = !report.program || report.program->rows.front().good_runs() != 0;
    return tuner.report_failed() || !is_proved ? 1 : 0;
  } catch (const TasksDone& done) {
    return done.status;
  } catch (const Interrupted&) {
    command::complain("cmtreplay", tuner.is_stored() ? "interrupted; the same command goes on from the cells in " +
                                                           options.matrix.results
                                                     : "interrupted; --results=DIR would keep what is done");
    return 1;
  }
}

}  // namespace cmt::replay
