#include "cmtreport/report/findings.h"

#include <algorithm>

#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::report {
namespace {

using output::bytes_text;
using output::percent_text;
using output::with_commas;

/// What a function's own allocations have in all.
struct FunctionTotals {
  FrameNumber function = 0;
  NodeTotals totals;
  NodeNumber largest = 0;  ///< of its nodes in the whole tree, the one with most peak bytes
};

std::vector<FunctionTotals> by_function(const CallTree& tree, const std::vector<NodeTotals>& totals) {
  std::vector<FunctionTotals> found(tree.functions().size());
  for (NodeNumber node = 0; node < totals.size(); ++node) {
    FunctionTotals& function = found[tree.nodes()[node].function];
    function.function = tree.nodes()[node].function;
    function.totals.sum += totals[node].sum;
    function.totals.peak_bytes += totals[node].peak_bytes;
    function.totals.peak_blocks += totals[node].peak_blocks;
    if (totals[node].peak_bytes > totals[function.largest].peak_bytes || function.largest == 0) function.largest = node;
  }
  return found;
}

class Finder {
 public:
  Finder(const Recording& recording, const Report& report, const std::vector<NodeTotals>& totals,
         const std::vector<NodeNumber>& node_of)
      : tree_(recording.tree()), report_(report), node_of_(node_of), functions_(by_function(tree_, totals)) {}

  std::vector<Finding> find() {
    for (const FunctionTotals& function : functions_) find_peak(function);
    for (const FunctionTotals& function : functions_) find_temporary(function);
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    return std::move(findings_);
  }

 private:
  static double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
  std::string name_of(const FunctionTotals& function) const {
    return text::to_line(tree_.functions()[function.function].name);
  }

  Finding& add(const char* kind, const char* part, const FunctionTotals& function, double weight) {
    findings_.push_back({.kind = kind,
                         .text = {},
                         .function = tree_.functions()[function.function].name,
                         .figures = {},
                         .part = part,
                         .span = {},
                         .node = node_of_[function.largest],
                         .weight = weight});
    return findings_.back();
  }

  void find_peak(const FunctionTotals& function) {
    const double of_peak = share(function.totals.peak_bytes, report_.peak.live_bytes);
    if (of_peak < 0.1) return;
    Finding& finding = add("peak", "code", function, of_peak);
    finding.text = percent_text(function.totals.peak_bytes, report_.peak.live_bytes) + " of the peak (" +
                   bytes_text(function.totals.peak_bytes) + " of " + bytes_text(report_.peak.live_bytes) +
                   ") was allocated by " + name_of(function);
    finding.figures = {{"bytes", function.totals.peak_bytes},
                       {"blocks", function.totals.peak_blocks},
                       {"peak_bytes", report_.peak.live_bytes}};
  }

  void find_temporary(const FunctionTotals& function) {
    const std::uint64_t blocks = function.totals.sum[Measure::temporary_blocks];
    const double of_calls = share(blocks, report_.total.allocated_blocks);
    if (of_calls < 0.05) return;
    Finding& finding = add("temporary", "code", function, of_calls / 2);
    finding.text = percent_text(blocks, report_.total.allocated_blocks) + " of all allocations (" +
                   with_commas(blocks) + ") are temporary blocks of " + name_of(function) +
                   ": freed by the next event of the thread that made them";
    finding.figures = {{"temporary_blocks", blocks}, {"allocated_blocks", report_.total.allocated_blocks}};
  }

  const CallTree& tree_;
  const Report& report_;
  const std::vector<NodeNumber>& node_of_;
  std::vector<FunctionTotals> functions_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> find_findings(const Recording& recording, const Report& report,
                                   const std::vector<NodeTotals>& totals, const std::vector<NodeNumber>& node_of) {
  return Finder(recording, report, totals, node_of).find();
}

}  // namespace cmt::report
