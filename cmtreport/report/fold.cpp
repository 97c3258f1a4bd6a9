#include "cmtreport/report/fold.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "libcmt/number_hash.h"
#include "toolkit/allocations/short_name.h"

namespace cmt::report {
namespace {

/// Of what is folded below a node, a function is told apart that has this part of the share that a node needs.
constexpr double function_part = 0.125;

std::uint64_t figure_of(const NodeTotals& totals, std::size_t i) {
  return i == judged_measures.size() ? totals.peak_bytes : totals.sum[judged_measures[i]];
}

void add_figures(FoldFigures& sums, const NodeTotals& totals) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += figure_of(totals, i);
}

float share_of(std::uint64_t figure, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<float>(static_cast<double>(figure) / static_cast<double>(all));
}

/// Gives numbers to the functions of a report's nodes.
class FrameNumbers {
 public:
  FrameNumbers(const CallTree& tree, Frames& frames)
      : tree_(tree), frames_(frames), numbers_(tree.functions().size()) {}

  FrameNumber of_function(FrameNumber function) {
    if (numbers_[function] == 0) numbers_[function] = append(tree_.functions()[function]) + 1;
    return numbers_[function] - 1;
  }

  FrameNumber append(const Function& function) {
    const auto next = static_cast<std::uint32_t>(frames_.libraries.size());
    const auto [library, is_new] = libraries_.try_emplace(function.library, next);
    if (is_new) frames_.libraries.push_back(function.library);
    frames_.function.push_back(function.name);
    frames_.short_name.push_back(allocations::short_name(function.name));
    frames_.library.push_back(library->second);
    frames_.file.push_back(function.file);
    frames_.line.push_back(function.line);
    return static_cast<FrameNumber>(frames_.function.size() - 1);
  }

  /// To be called once, last: takes away the short names that tell nothing, and those that several functions have.
  void keep_unique_short_names() {
    std::unordered_map<std::string, std::string_view> full_names;
    std::unordered_set<std::string> shared;
    for (std::size_t i = 0; i < frames_.function.size(); ++i) {
      const auto [found, is_new] = full_names.try_emplace(frames_.short_name[i], frames_.function[i]);
      if (!is_new && found->second != frames_.function[i]) shared.insert(found->first);
    }
    for (std::size_t i = 0; i < frames_.function.size(); ++i) {
      std::string& name = frames_.short_name[i];
      if (name == frames_.function[i] || shared.contains(name)) name.clear();
    }
  }

 private:
  const CallTree& tree_;
  Frames& frames_;
  std::vector<FrameNumber> numbers_;  // +1; 0: not yet
  std::unordered_map<std::string, std::uint32_t> libraries_;
};

/// What is folded below a node that is kept, and was allocated by one function.
struct FoldedFunction {
  NodeNumber below = 0;
  FrameNumber function = 0;
  FoldFigures figures{};
  std::vector<NodeNumber> nodes{};
};

/// Folds once.
class Folder {
 public:
  Folder(const CallTree& tree, const TotalsByNode& totals, const FoldFigures& all, double share)
      : tree_(tree),
        totals_(totals),
        all_(all),
        folded_{.nodes = {},
                .frames = {},
                .folded = {.share = share, .function_share = share * function_part},
                .node_of = std::vector<NodeNumber>(tree.nodes().size())},
        frames_(tree, folded_.frames) {}

  FoldedTree fold(const std::vector<float>& shares) {
    const auto least = static_cast<float>(folded_.folded.share);
    for (NodeNumber node = 0; node < shares.size(); ++node) {
      const CallTree::Node& call = tree_.nodes()[node];
      const NodeNumber parent = folded_.node_of[call.parent];
      const bool is_kept = node == 0 || (shares[node] != 0 && shares[node] >= least);
      folded_.node_of[node] = is_kept ? append(parent, frames_.of_function(call.function)) : parent;  // for now
      if (is_kept) continue;
      ++folded_.folded.nodes;
      if (totals_.has(node)) add_folded(parent, node);
    }
    append_others();
    frames_.keep_unique_short_names();
    return std::move(folded_);
  }

 private:
  NodeNumber append(NodeNumber parent, FrameNumber frame) {
    folded_.nodes.parent.push_back(parent);
    folded_.nodes.frame.push_back(frame);
    return static_cast<NodeNumber>(folded_.nodes.parent.size() - 1);
  }

  void add_folded(NodeNumber below, NodeNumber node) {
    const FrameNumber function = tree_.nodes()[node].function;
    const auto [place, is_new] = places_.try_emplace(std::uint64_t{below} << 32 | function, functions_.size());
    if (is_new) functions_.push_back({below, function});
    FoldedFunction& found = functions_[place->second];
    add_figures(found.figures, totals_[node]);
    found.nodes.push_back(node);
  }

  bool is_told_apart(const FoldedFunction& function) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (function.figures[i] != 0 && share_of(function.figures[i], all_[i]) >= folded_.folded.function_share)
        return true;
    }
    return false;
  }

  /// A node "[other, N functions]" below each that something was folded into, and below it those functions that matter.
  void append_others() {
    std::stable_sort(functions_.begin(), functions_.end(),
                     [](const FoldedFunction& a, const FoldedFunction& b) { return a.below < b.below; });
    for (auto first = functions_.begin(); first != functions_.end();) {
      const auto last =
          std::find_if(first, functions_.end(), [&](const FoldedFunction& each) { return each.below != first->below; });
      const auto count = last - first;
      const std::string name = "[other, " + std::to_string(count) + (count == 1 ? " function]" : " functions]");
      const NodeNumber other = append(first->below, frames_.append({.name = name, .library = {}, .file = {}}));
      for (; first != last; ++first) {
        const NodeNumber node = is_told_apart(*first) ? append(other, frames_.of_function(first->function)) : other;
        for (const NodeNumber each : first->nodes) folded_.node_of[each] = node;
      }
    }
  }

  const CallTree& tree_;
  const TotalsByNode& totals_;
  const FoldFigures& all_;
  FoldedTree folded_;
  FrameNumbers frames_;
  tsl::robin_map<std::uint64_t, std::size_t, NumberHash> places_;  // in functions_, by node and function
  std::vector<FoldedFunction> functions_;
};

}  // namespace

void NodeTotals::add(std::size_t moment, const SparseMeasures& more) {
  if (moment != moment_) changed_ = 0;
  moment_ = static_cast<std::uint32_t>(moment);
  more.add_to(sum);
  changes += static_cast<std::uint32_t>(std::popcount(more.present & ~changed_));
  changed_ |= more.present;
}

void NodeTotals::merge(const NodeTotals& more) {
  sum += more.sum;
  peak_bytes += more.peak_bytes;
  peak_blocks += more.peak_blocks;
  changes += more.changes;
}

Folding::Folding(const CallTree& tree, const TotalsByNode& totals)
    : tree_(tree), totals_(totals), shares_(tree.nodes().size()) {
  std::vector<std::uint64_t> with_callees(tree.nodes().size());
  for (std::size_t i = 0; i < all_.size(); ++i) {
    std::fill(with_callees.begin(), with_callees.end(), 0);
    for (const NodeNumber node : totals.nodes()) with_callees[node] = figure_of(totals[node], i);
    for (std::size_t node = with_callees.size(); --node > 0;)  // a parent has a lower number
      with_callees[tree.nodes()[node].parent] += with_callees[node];
    all_[i] = with_callees[0];
    if (all_[i] == 0) continue;
    for (std::size_t node = 0; node < with_callees.size(); ++node)
      shares_[node] = std::max(shares_[node], share_of(with_callees[node], all_[i]));
  }
}

double Folding::least_share(const FoldBudget& budget) const {
  constexpr int steps_a_doubling = 8, steps = 24 * steps_a_doubling;
  std::array<FoldBudget, steps> by_step{};  // nodes with a share of at least 2^-(step / steps_a_doubling)
  for (NodeNumber node = 0; node < shares_.size(); ++node) {
    const double step = shares_[node] == 0 ? steps : std::ceil(-std::log2(shares_[node]) * steps_a_doubling);
    if (step >= steps) continue;
    FoldBudget& found = by_step[static_cast<std::size_t>(std::max(step, 0.0))];
    ++found.nodes;
    found.changes += totals_[node].changes;
  }
  FoldBudget sum;
  int step = 0;
  for (; step < steps; ++step) {
    sum.nodes += by_step[static_cast<std::size_t>(step)].nodes;
    sum.changes += by_step[static_cast<std::size_t>(step)].changes;
    if (sum.nodes > budget.nodes || sum.changes > budget.changes) break;
  }
  return step == steps ? 0 : std::exp2(-static_cast<double>(std::max(step - 1, 0)) / steps_a_doubling);
}

FoldedTree Folding::fold(double share) const { return Folder(tree_, totals_, all_, share).fold(shares_); }

}  // namespace cmt::report
