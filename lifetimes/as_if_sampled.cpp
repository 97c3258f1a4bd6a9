// Judges a sampler: counts the truth and follows simulated samplers in one pass, puts their estimates together by set,
// and compares.
#include "lifetimes/as_if_sampled.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "analysis/groups/group_walk.h"
#include "analysis/groups/options.h"
#include "analysis/sampling/simulated_samplers.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

using SetId = std::uint32_t;

SamplerOptions parse_sampler_options(const command::CommandLine& line) {
  return {line.parsed("as-if-sampled", "", "a sampling interval in bytes, as 512K", command::parse_size),
          static_cast<unsigned>(line.number("runs", 30, 1, SimulatedSamplers::runs_max)),
          line.number("seed", 1, 0, UINT32_MAX)};
}

PerFigure<std::uint64_t> truth_of(const Use& use) { return {use.allocated.bytes, use.peak.bytes, use.leaked.bytes}; }
PerFigure<Estimate> estimates_of(const SampledUse& use) { return {use.allocated, use.peak, use.live}; }

/// The true figures of sets of blocks, and the estimates of each run.
class Judgement {
 public:
  explicit Judgement(std::size_t sets) : truths_(sets) {}

  void add_truth(SetId set, const Use& use) { truths_[set] += use; }
  void add_estimates(SetId set, unsigned run, const SampledUse& estimates) { estimates_[{set, run}] += estimates; }

  Coverages judge(const SamplerOptions& options) const {
    Use total;
    for (const Use& each : truths_) total += each;
    Coverages coverages;
    for (std::size_t figure = 0; figure < judged_figures.size(); ++figure)
      coverages.figures[figure] = judge(figure, static_cast<double>(truth_of(total)[figure]), options);
    return coverages;
  }

  PerFigure<JudgedBytes> judged(SetId set, unsigned run, std::uint64_t interval) const {
    PerFigure<JudgedBytes> judged;
    const auto found = estimates_.find({set, run});
    for (std::size_t figure = 0; figure < judged.size(); ++figure) {
      judged[figure].bytes = truth_of(truths_[set])[figure];
      if (found != estimates_.end()) judged[figure].estimate = estimates_of(found->second)[figure];
      judged[figure].estimate.interval = interval;
    }
    return judged;
  }

 private:
  Coverage judge(std::size_t figure, double total, const SamplerOptions& options) const {
    Coverage coverage;
    std::vector<double> widths;
    for (SetId set = 0; set < truths_.size(); ++set) {
      const std::uint64_t truth = truth_of(truths_[set])[figure];
      if (truth == 0) continue;
      if (judged(set, 0, options.interval)[figure].estimate.samples == 0) {
        ++coverage.unseen;
        coverage.unseen_bytes += truth;
      }
      if (static_cast<double>(truth) < share_min * total) continue;
      ++coverage.sets;
      for (unsigned run = 0; run < options.runs; ++run) {
        const JudgedBytes each = judged(set, run, options.interval)[figure];
        const Range range = interval95(each.estimate);
        coverage.held += each.holds();
        widths.push_back((range.high - range.low) / 2 / static_cast<double>(truth));
      }
    }
    if (widths.empty()) return coverage;
    coverage.held /= static_cast<double>(widths.size());
    const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
    std::nth_element(widths.begin(), middle, widths.end());
    coverage.width_median = *middle;
    return coverage;
  }

  std::vector<Use> truths_;
  std::map<std::pair<SetId, unsigned>, SampledUse> estimates_;
};

/// The sets of a report: the functions that stacks are charged to, for example.
struct Sets {
  std::vector<std::string> names;
  std::vector<SetId> of_entry;  ///< of the uses
};

Sets sets_of(const Uses& uses, const ShownStacks& shown, const ContributorOptions& asked) {
  Sets sets;
  if (is_of_stacks(asked.by)) {
    Labels labels(shown.stacks, key_of(asked.by), shown.charges(asked.charges), asked.hidden);
    const StackGroups<Use> found = GroupWalk<Uses>(shown.stacks, uses, labels, asked.metric).find_groups();
    for (const GroupOf<Use>& group : found.groups) sets.names.push_back(group.name);
    for (const GroupNumber own : found.own_groups) sets.of_entry.push_back(static_cast<SetId>(index_of(own)));
    return sets;
  }
  for (const Uses::Entry& entry : uses.entries) {
    sets.of_entry.push_back(static_cast<SetId>(sets.names.size()));
    sets.names.push_back(entry.name);
  }
  return sets;
}

/// Returns the errors of the totals, which are the figures of one set of all.
PerFigure<double> errors_of(const Judgement& all, const SamplerOptions& options) {
  PerFigure<double> squares{};
  for (unsigned run = 0; run < options.runs; ++run) {
    const PerFigure<JudgedBytes> judged = all.judged(0, run, options.interval);
    for (std::size_t figure = 0; figure < squares.size(); ++figure) {
      const auto truth = static_cast<double>(judged[figure].bytes);
      if (truth != 0) squares[figure] += std::pow(judged[figure].estimate.bytes / truth - 1, 2);
    }
  }
  for (double& each : squares) each = std::sqrt(each / options.runs);
  return squares;
}

std::size_t figure_of(Metric metric) { return metric == Metric::bytes ? 0 : metric == Metric::peak ? 1 : 2; }

void sort_sets(SamplerReport& report, const ContributorOptions& asked) {
  const std::size_t figure = figure_of(asked.metric);
  const auto bytes = [figure](const JudgedSet& set) { return set.figures[figure].bytes; };
  std::sort(report.sets.begin(), report.sets.end(), [&](const JudgedSet& a, const JudgedSet& b) {
    return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a.name < b.name;
  });
  const std::size_t all = report.sets.size();
  const double least = asked.min * static_cast<double>(bytes(report.total));
  std::erase_if(report.sets, [&](const JudgedSet& set) { return static_cast<double>(bytes(set)) < least; });
  if (asked.top != 0 && report.sets.size() > asked.top) report.sets.resize(asked.top);
  report.left_out = all - report.sets.size();
}

SamplerReport report_of(const Uses& uses, const SimulatedSamplers& samplers, std::uint64_t peaks,
                        const ShownStacks& shown, const ContributorOptions& asked, const SamplerOptions& options) {
  const Sets sets = sets_of(uses, shown, asked);
  Judgement of_sets(sets.names.size()), of_stacks(uses.entries.size()), of_all(1);
  for (SetId i = 0; i < uses.entries.size(); ++i) {
    of_sets.add_truth(sets.of_entry[i], uses.entries[i].use);
    of_stacks.add_truth(i, uses.entries[i].use);
    of_all.add_truth(0, uses.entries[i].use);
  }
  samplers.for_each(peaks, [&](KeyId key, unsigned run, const SampledUse& estimates) {
    const auto entry = std::lower_bound(uses.entries.begin(), uses.entries.end(), shown.of(key),
                                        [](const Uses::Entry& each, KeyId wanted) { return each.key < wanted; });
    if (entry == uses.entries.end() || entry->key != shown.of(key)) return;  // --focus or --ignore left it out
    const auto i = static_cast<SetId>(entry - uses.entries.begin());
    of_sets.add_estimates(sets.of_entry[i], run, estimates);
    of_stacks.add_estimates(i, run, estimates);
    of_all.add_estimates(0, run, estimates);
  });
  SamplerReport report;
  report.by = asked.by;
  report.metric = asked.metric;
  report.sampler = options;
  for (const Uses::Entry& entry : uses.entries) report.allocations += entry.use.allocated.blocks;
  report.total = {"all", of_all.judged(0, 0, options.interval)};
  report.total_errors.figures = errors_of(of_all, options);
  report.of_sets = of_sets.judge(options);
  if (is_of_stacks(asked.by)) report.of_stacks = of_stacks.judge(options);
  for (SetId set = 0; set < sets.names.size(); ++set)
    report.sets.push_back({sets.names[set], of_sets.judged(set, 0, options.interval)});
  std::erase_if(report.sets, [](const JudgedSet& set) { return set.figures[0].bytes == 0; });  // only its callees have
  sort_sets(report, asked);
  return report;
}

std::string percent(double share) { return output::fixed(100 * share, 1) + " %"; }

std::string judged_text(const JudgedBytes& judged) {
  return estimate_text(judged.estimate) + (judged.holds() ? "" : " !");
}

constexpr PerFigure<const char*> figure_titles{"allocated", "at peak", "at end"};

std::string totals_table(const SamplerReport& report) {
  output::Table table(
      {"", "truth", "estimate of run 1", "error", "error of " + output::counted(report.sampler.runs, "run")});
  for (std::size_t figure = 0; figure < figure_titles.size(); ++figure) {
    const JudgedBytes& total = report.total.figures[figure];
    const double error = total.bytes == 0 ? 0 : total.estimate.bytes / static_cast<double>(total.bytes) - 1;
    table.add({figure_titles[figure], output::bytes_text(total.bytes), judged_text(total),
               (error > 0 ? "+" : "") + percent(error), percent(report.total_errors.figures[figure])});
  }
  return table.text(terminal::table_width());
}

std::string sets_table(const SamplerReport& report) {
  std::vector<std::string> titles{std::string(name(report.by))};
  for (const char* const title : figure_titles) titles.insert(titles.end(), {title, std::string(title) + ", sampled"});
  output::Table table(titles);
  // The figure that is sorted by stays longest.
  for (const std::size_t figure : {std::size_t{2}, std::size_t{1}, std::size_t{0}}) {
    if (figure == figure_of(report.metric)) continue;
    table.leave_out_first({titles[1 + 2 * figure], titles[2 + 2 * figure]});
  }
  const auto add = [&table](const JudgedSet& set, const std::string& set_name) {
    std::vector<std::string> cells{set_name};
    for (const JudgedBytes& each : set.figures)
      cells.insert(cells.end(), {output::bytes_text(each.bytes), judged_text(each)});
    table.add(cells);
  };
  for (const JudgedSet& set : report.sets) add(set, text::to_line(set.name));
  add(report.total, "all" + (report.left_out == 0 ? "" : ", with " + output::with_commas(report.left_out) + " more"));
  return table.text(terminal::table_width());
}

std::string coverage_table(const SamplerReport& report) {
  output::Table table({"", "sets", "intervals hold", "half-width", "no sample", "their bytes"});
  const auto add = [&table](const Coverages& coverages, const std::string& what) {
    for (std::size_t figure = 0; figure < figure_titles.size(); ++figure) {
      const Coverage& each = coverages.figures[figure];
      table.add({what + ", " + figure_titles[figure], output::with_commas(each.sets), percent(each.held),
                 percent(each.width_median), output::with_commas(each.unseen), output::bytes_text(each.unseen_bytes)});
    }
  };
  add(report.of_sets, std::string(name(report.by)));
  if (is_of_stacks(report.by)) add(report.of_stacks, "stack");
  return table.text(terminal::table_width());
}

std::string sampler_text(const SamplerReport& report) {
  const std::string interval = output::bytes_text(report.sampler.interval);
  const std::string limit = output::bytes_text(whole(unseen_below(report.sampler.interval)));
  return command::input_name(report.name) + " as if sampled every " + interval + ": " +
         output::counted(report.total.figures[0].estimate.samples, "sample") + " of " +
         output::counted(report.allocations, "allocation") + " (run 1 of " + std::to_string(report.sampler.runs) +
         ", seed " + std::to_string(report.sampler.seed) + ")\n\n" + totals_table(report) + "\n" + sets_table(report) +
         "\nsampled: the estimate of run 1 and its 95 % interval; !: the truth is outside\na " +
         std::string(name(report.by)) + " below " + limit + " can be without a sample\n\n" + "all " +
         output::counted(report.sampler.runs, "run") +
         ", sets with 0.1 % or more; no sample: in run 1, of any size\n\n" + coverage_table(report);
}

}  // namespace

bool asks_as_if_sampled(const command::CommandLine& line) {
  if (!line.has("as-if-sampled")) {
    refuse_without(line, {"runs", "seed"}, "--as-if-sampled");
    return false;
  }
  line.refuse_together("as-if-sampled",
                       {"merge", "summary", "counts", "annotate", "leaks", "totals", "plot", "csv", "diff", "baseline",
                        "folded", "pprof", "speedscope", "slice", "clock", "pool", "inclusive"});
  return true;
}

void judge_samplers(const trace::Options& options, const command::CommandLine& line) {
  const SamplerOptions sampler = parse_sampler_options(line);
  const StackOptions stack_options = parse_stack_options(line);
  const ContributorOptions& asked = stack_options.contributors;
  if (asked.by == By::caller) throw command::UsageError("--as-if-sampled has no trees of callers: use --by=function");
  if (asked.metric != Metric::bytes && asked.metric != Metric::peak && asked.metric != Metric::live)
    throw command::UsageError("--as-if-sampled sorts by bytes, peak or live");
  trace::Trace trace(options, false, is_of_stacks(asked.by));
  UseCounter counter({.by = asked.by}, trace.complaints());
  SimulatedSamplers samplers(asked.by, sampler.interval, sampler.runs, sampler.seed);
  trace.for_each([&](const Event& event) {
    samplers.count_event(event, counter.peaks());
    counter.count_event(event);
  });
  const std::uint64_t peaks = counter.peaks();
  Uses uses = counter.finish(options.path);
  ShownStacks shown;
  if (is_of_stacks(asked.by))
    shown = name_uses(uses, trace, options, asked, {options.tool, stack_options.debug_directories});
  SamplerReport report = report_of(uses, samplers, peaks, shown, asked, sampler);
  report.name = std::filesystem::path(options.path).filename().string();
  command::print(options.form == trace::Options::Form::json ? output::json_text(report) : sampler_text(report));
  trace.complaints().say_count();
}

}  // namespace cmt::lifetimes
