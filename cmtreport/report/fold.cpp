// Folds a call tree in two passes, as fold.h describes. Parents come before children, so one pass over the nodes finds
// the kept node of each. A second pass adds up the functions that were folded below it.

#include "cmtreport/report/fold.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/stacks/function_names/short_name.h"
#include "libcmt/number_hash.h"

namespace cmt::report {
namespace {

/// A function that is folded below a node becomes a child of "[other, N functions]" if it has this part of the share
/// that a node needs.
constexpr double function_part = 0.125;

float share_of(std::uint64_t figure, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<float>(static_cast<double>(figure) / static_cast<double>(all));
}

/// Names the frames of a report.
class FrameNames {
 public:
  explicit FrameNames(Frames& frames) : frames_(frames) {}

  void append(const Function& function) {
    const auto next = static_cast<std::uint32_t>(frames_.libraries.size());
    const auto [library, is_new] = libraries_.try_emplace(function.library, next);
    if (is_new) frames_.libraries.push_back(function.library);
    if (function.is_allocation)
      frames_.allocation_functions.push_back(static_cast<FrameNumber>(frames_.function.size()));
    if (function.is_python) frames_.python_functions.push_back(static_cast<FrameNumber>(frames_.function.size()));
    frames_.function.push_back(function.name);
    frames_.short_name.push_back(analysis::short_name(function.name));
    frames_.library.push_back(library->second);
    frames_.file.push_back(function.file);
    frames_.line.push_back(function.line);
  }

  /// Removes short names that equal the full name, and short names that several functions have. Call it once, last.
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
  Frames& frames_;
  std::unordered_map<std::string, std::uint32_t> libraries_;
};

/// The figures that one function has in the nodes that are folded below a kept node.
struct FoldedFunction {
  NodeNumber below = 0;
  FunctionId function{};
  FoldFigures figures{};
};

/// Folds once.
class Folder {
 public:
  Folder(const CallTree& tree, const TotalsByNode& totals, const FoldFigures& all, double share)
      : tree_(tree),
        totals_(totals),
        all_(all),
        folded_{.nodes = {},
                .origins = {},
                .folded = {.share = share, .function_share = share * function_part},
                .node_of = std::vector<NodeNumber>(tree.nodes().size())},
        frame_of_function_(tree.functions().size()) {}

  FoldedTree fold(const std::vector<float>& shares) {
    const auto least = static_cast<float>(folded_.folded.share);
    const auto is_kept = [&](CallId call) {
      const float share = shares[index_of(call)];
      return call == CallTree::root || (share != 0 && share >= least);
    };
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto call = static_cast<CallId>(i);
      const auto& [caller, function] = tree_.at(call);
      assert(i == 0 || index_of(caller) < i);
      const NodeNumber parent = folded_.node_of_call(caller);
      folded_.node_of[i] = is_kept(call) ? append(parent, frame_of(function)) : parent;  // for now
      folded_.folded.nodes += !is_kept(call);
    }
    totals_.for_each([&](CallId call, const NodeTotals& totals) {
      const CallId charged = tree_.charged(call);
      if (!is_kept(call) && !is_kept(charged)) add_folded(call, charged, totals);
    });
    append_others();
    return std::move(folded_);
  }

 private:
  NodeNumber append(NodeNumber parent, FrameNumber frame) {
    folded_.nodes.parent.push_back(parent);
    folded_.nodes.frame.push_back(frame);
    return static_cast<NodeNumber>(folded_.nodes.parent.size() - 1);
  }

  FrameNumber append_frame(const FoldedTree::FrameOrigin& origin) {
    folded_.origins.push_back(origin);
    return static_cast<FrameNumber>(folded_.origins.size() - 1);
  }
  FrameNumber frame_of(FunctionId function) {
    FrameNumber& known = frame_of_function_[index_of(function)];
    if (known == 0) known = append_frame({.function = function}) + 1;
    return known - 1;
  }

  void add_folded(CallId call, CallId charged, const NodeTotals& totals) {
    const NodeNumber below = folded_.node_of_call(call);
    assert(below < folded_.nodes.parent.size());
    const FunctionId function = tree_.at(charged).function;
    const auto next = static_cast<std::uint32_t>(functions_.size());
    const auto [place, is_new] = places_.try_emplace(std::uint64_t{below} << 32 | index_of(function), next);
    if (is_new) functions_.push_back({below, function});
    FoldFigures& figures = functions_[place->second].figures;
    for (std::size_t i = 0; i < figures.size(); ++i) figures[i] += totals.figure(i);
    folded_calls_.emplace_back(call, place->second);
  }

  bool has_own_node(const FoldedFunction& function) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (function.figures[i] != 0 && share_of(function.figures[i], all_[i]) >= folded_.folded.function_share)
        return true;
    }
    return false;
  }

  /// Adds a node "[other, N functions]" below each node that functions were folded into, and below it the functions
  /// that are large enough.
  void append_others() {
    std::vector<std::uint32_t> order(functions_.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    const auto below = [this](std::uint32_t place) { return functions_[place].below; };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return below(a) < below(b); });
    std::vector<NodeNumber> nodes(functions_.size());
    for (auto first = order.begin(); first != order.end();) {
      const auto last =
          std::find_if(first, order.end(), [&](std::uint32_t each) { return below(each) != below(*first); });
      const auto count = static_cast<std::uint32_t>(last - first);
      const NodeNumber other = append(below(*first), append_frame({.folded_functions = count}));
      for (; first != last; ++first) {
        const FoldedFunction& function = functions_[*first];
        nodes[*first] = has_own_node(function) ? append(other, frame_of(function.function)) : other;
      }
    }
    for (const auto& [call, place] : folded_calls_) folded_.node_of[index_of(call)] = nodes[place];
  }

  const CallTree& tree_;
  const TotalsByNode& totals_;
  const FoldFigures& all_;
  FoldedTree folded_;
  std::vector<FrameNumber> frame_of_function_;                       // +1; 0: not yet
  tsl::robin_map<std::uint64_t, std::uint32_t, NumberHash> places_;  // in functions_, by node and function
  std::vector<FoldedFunction> functions_;
  std::vector<std::pair<CallId, std::uint32_t>> folded_calls_;  // and their places in functions_
};

}  // namespace

Folding::Folding(const CallTree& tree, const TotalsByNode& totals)
    : tree_(tree), totals_(totals), shares_(tree.nodes().size()) {
  assert(totals.size() == tree.nodes().size());
  std::vector<std::uint64_t> with_callees(tree.nodes().size());
  for (std::size_t i = 0; i < all_.size(); ++i) {
    std::fill(with_callees.begin(), with_callees.end(), 0);
    totals.for_each_figure(i, [&](CallId call, std::uint64_t figure) { with_callees[index_of(call)] = figure; });
    for (std::size_t node = with_callees.size(); --node > 0;)  // a parent has a lower number
      with_callees[index_of(tree.nodes()[node].parent)] += with_callees[node];
    all_[i] = with_callees[0];
    if (all_[i] == 0) continue;
    for (std::size_t node = 0; node < with_callees.size(); ++node) {
      if (with_callees[node] != 0) shares_[node] = std::max(shares_[node], share_of(with_callees[node], all_[i]));
    }
  }
}

double Folding::least_share(const FoldBudget& budget) const {
  constexpr int steps_a_doubling = 8, steps = 24 * steps_a_doubling;
  std::array<FoldBudget, steps + 1> by_step{};  // nodes with a share of at least 2^-(step / steps_a_doubling)
  const auto step_of = [this](std::size_t node) {
    const double found = shares_[node] == 0 ? steps : std::ceil(-std::log2(shares_[node]) * steps_a_doubling);
    return static_cast<std::size_t>(std::clamp<double>(found, 0, steps));
  };
  for (std::size_t node = 0; node < shares_.size(); ++node) ++by_step[step_of(node)].nodes;
  totals_.for_each(
      [&](CallId call, const NodeTotals& totals) { by_step[step_of(index_of(call))].changes += totals.changes; });
  FoldBudget sum;
  int step = 0;
  for (; step < steps; ++step) {
    sum.nodes += by_step[static_cast<std::size_t>(step)].nodes;
    sum.changes += by_step[static_cast<std::size_t>(step)].changes;
    if (sum.nodes > budget.nodes || sum.changes > budget.changes) break;
  }
  return step == steps ? 0 : std::exp2(-static_cast<double>(std::max(step - 1, 0)) / steps_a_doubling);
}

FoldedTree Folding::fold_nodes(double share) const { return Folder(tree_, totals_, all_, share).fold(shares_); }

void Folding::name_frames(FoldedTree& folded) const {
  assert(folded.frames.function.empty());  // short names are unique only if all are named at once
  FrameNames names(folded.frames);
  for (const auto& [function, count] : folded.origins) {
    if (count == 0)
      names.append(tree_.at(function));
    else
      names.append(
          {.name = "[other, " + std::to_string(count) + (count == 1 ? " function]" : " functions]"), .library = {}});
  }
  names.keep_unique_short_names();
}

}  // namespace cmt::report
