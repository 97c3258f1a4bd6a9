// Puts the largest changes into words. The changes of one contributor in several figures become one finding.

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "analysis/stacks/function_names/short_name.h"
#include "cmtreport/diff/build_diff.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {
namespace {

using analysis::ChangedContributor;
using analysis::Difference;
using analysis::Metric;

/// The least share of all changes of a figure, and of the figure itself, that is worth a finding.
constexpr double least_share_of_changes = 0.02, least_share_of_all = 0.0005;

/// The factor for the weight of a change that may be chance.
constexpr double chance_weight = 0.01;

/// The weight of a share of a figure in the order of findings: memory comes first.
double weight_of(Metric metric) {
  switch (metric) {
    case Metric::peak:
    case Metric::live:
      return 1;
    case Metric::bytes:
      return 0.7;
    default:
      return 0.4;
  }
}

/// "bytes live at the end".
std::string figure_name(Metric metric) {
  return (metric == Metric::peak || metric == Metric::live || metric == Metric::bytes ? "bytes " : "") +
         analysis::metric_text(metric);
}

std::string_view measure_name(Metric metric) {
  return std::find_if(diff_measures.begin(), diff_measures.end(),
                      [metric](const DiffMeasure& each) { return each.metric == metric; })
      ->name;
}

std::int64_t size_of(std::int64_t number) { return number < 0 ? -number : number; }

/// "allocates 1.2 MiB more".
std::string change_words(Metric metric, std::int64_t change, bool is_function) {
  const std::string by = analysis::figure_text(size_of(change), metric), more = change < 0 ? " less" : " more";
  const std::string fewer = change < 0 ? " fewer" : " more";
  switch (metric) {
    case Metric::peak:
      return (is_function ? "has " : "have ") + by + more + " at the peak";
    case Metric::live:
      return (is_function ? "has " : "have ") + by + more + " live at the end";
    case Metric::bytes:
      return (is_function ? "allocates " : "are allocated for ") + by + more;
    case Metric::temporary:
      return (is_function ? "makes " : "are ") + by + fewer + " temporary blocks";
    default:
      return (is_function ? "makes " : "are ") + by + fewer + " blocks";
  }
}

/// "+35.2 %", or empty if there was nothing before.
std::string percent_change(std::int64_t before, std::int64_t after) {
  if (before <= 0) return "";
  const double percent = 100 * static_cast<double>(after - before) / static_cast<double>(before);
  return (percent > 0 ? "+" : "") + output::fixed(percent, size_of(after - before) >= before ? 0 : 1) + " %";
}

/// The change of one contributor in one figure.
struct Candidate {
  const ChangedContributor* contributor = nullptr;
  const Difference* difference = nullptr;
  double weight = 0;
};

/// The figure of all contributors, in the trace that has more. Shares are of it.
double whole_of(const Difference& difference) {
  return static_cast<double>(std::max(size_of(difference.total.before.metric(difference.metric)),
                                      size_of(difference.total.after.metric(difference.metric))));
}

std::string name_text(const std::string& function, bool has_stacks) {
  constexpr std::size_t name_columns = 48;
  const std::string name = output::shortened(text::to_line(analysis::short_name(function)), name_columns);
  return has_stacks ? name : "blocks of " + name;
}

std::string text_of(const std::vector<Candidate>& candidates, bool has_stacks) {
  const Candidate& first = candidates.front();
  const ChangedContributor& each = *first.contributor;
  const Metric metric = first.difference->metric;
  const std::int64_t before = each.self.before.metric(metric), after = each.self.after.metric(metric);
  std::string text = name_text(each.name, has_stacks) + " " + change_words(metric, each.change, has_stacks);
  const std::string percent = percent_change(before, after);
  if (each.is_new)
    text += " (new)";
  else if (each.is_gone)
    text += " (gone)";
  else if (!percent.empty())
    text += " (" + percent + ")";
  text += ", " + output::fixed(100 * std::abs(each.share), 1) + " % of all changes of " + figure_name(metric);
  if (each.is_maybe_chance) text += ", no more than calls in random order do";
  for (std::size_t i = 1; i < std::min<std::size_t>(candidates.size(), 3); ++i) {
    const Metric other = candidates[i].difference->metric;
    const std::int64_t change = candidates[i].contributor->change;
    text += std::string(i == 1 ? "; " : ", ") + (change > 0 ? "+" : "") + analysis::figure_text(change, other) + " " +
            analysis::metric_text(other);
  }
  return text;
}

DiffFinding finding_of(const std::vector<Candidate>& candidates, bool has_stacks) {
  assert(!candidates.empty());
  const Candidate& first = candidates.front();
  const ChangedContributor& each = *first.contributor;
  const Metric metric = first.difference->metric;
  return {.kind = each.is_new       ? "new"
                  : each.is_gone    ? "gone"
                  : each.change < 0 ? "less"
                                    : "more",
          .figure = (each.change > 0 ? "+" : "") + analysis::figure_text(each.change, metric),
          .headline = analysis::metric_text(metric) + ", of " + name_text(each.name, has_stacks),
          .text = text_of(candidates, has_stacks),
          .function = each.name,
          .measure = std::string(measure_name(metric)),
          .before = each.self.before.metric(metric),
          .after = each.self.after.metric(metric),
          .share = each.share,
          .part = has_stacks ? "code" : "sizes",
          .weight = first.weight};
}

void add_doubts(const DiffSideFacts& side, std::vector<DiffFinding>& findings) {
  std::string text;
  if (side.truncated) text = " breaks off";
  if (side.defects != 0)
    text += std::string(text.empty() ? "" : ", and") + " has " + output::counted(side.defects, "defect");
  if (text.empty()) return;
  findings.push_back(
      {.kind = "lost",
       .figure = {},
       .headline = output::shortened(text::to_line(side.name), 48) + text,
       .urgent = true,
       .text = output::shortened(text::to_line(side.name), 48) + text + ": what it lacks is not compared",
       .function = {},
       .measure = {},
       .part = "traces",
       .weight = 1});
}

}  // namespace

std::vector<DiffFinding> find_changes(const DiffReport& report, const std::vector<Difference>& differences) {
  std::map<std::pair<std::string, analysis::LabelId>, std::vector<Candidate>> by_name;
  for (const Difference& difference : differences) {
    const double whole = whole_of(difference);
    for (const ChangedContributor& each : difference.contributors) {
      const double share_of_all = whole == 0 ? 0 : static_cast<double>(size_of(each.change)) / whole;
      if (std::abs(each.share) < least_share_of_changes || share_of_all < least_share_of_all) continue;
      const double weight = share_of_all * weight_of(difference.metric) * (each.is_maybe_chance ? chance_weight : 1);
      by_name[{each.name, each.label}].push_back({&each, &difference, weight});
    }
  }
  std::vector<DiffFinding> findings;
  for (auto& [name, candidates] : by_name) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
    findings.push_back(finding_of(candidates, report.has_stacks));
  }
  add_doubts(report.before, findings);
  add_doubts(report.after, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const DiffFinding& a, const DiffFinding& b) { return a.weight > b.weight; });
  return findings;
}

}  // namespace cmt::report
