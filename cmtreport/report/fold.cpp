#include "cmtreport/report/fold.h"

#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace cmt::report {
namespace {

/// The figures that a node is judged by: none of them is ever below 0.
constexpr std::array<Measure, 8> judged{
    Measure::allocated_bytes,     Measure::allocated_blocks,   Measure::temporary_blocks, Measure::short_lived_blocks,
    Measure::other_thread_blocks, Measure::reallocated_blocks, Measure::untouched_bytes,  Measure::leaked_bytes};

using Judged = std::array<std::uint64_t, judged.size() + 1>;

Judged judged_of(const NodeTotals& totals) {
  Judged figures{};
  for (std::size_t i = 0; i < judged.size(); ++i) figures[i] = totals.sum[judged[i]];
  figures.back() = totals.peak_bytes;
  return figures;
}

/// Which nodes, with all that they call, have enough of something.
std::vector<bool> find_large(const CallTree& tree, const std::vector<NodeTotals>& totals, double share) {
  const std::size_t count = tree.nodes().size();
  std::vector<Judged> with_callees(count);
  for (std::size_t node = 0; node < count; ++node) with_callees[node] = judged_of(totals[node]);
  for (std::size_t node = count; --node > 0;) {  // a parent has a lower number
    Judged& parent = with_callees[tree.nodes()[node].parent];
    for (std::size_t i = 0; i < parent.size(); ++i) parent[i] += with_callees[node][i];
  }
  std::vector<bool> is_large(count);
  for (std::size_t node = 0; node < count; ++node) {
    for (std::size_t i = 0; i < with_callees[0].size() && !is_large[node]; ++i) {
      const double least = share * static_cast<double>(with_callees[0][i]);
      is_large[node] = with_callees[node][i] != 0 && static_cast<double>(with_callees[node][i]) >= least;
    }
  }
  is_large[0] = true;
  return is_large;
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
    frames_.library.push_back(library->second);
    frames_.file.push_back(function.file);
    frames_.line.push_back(function.line);
    return static_cast<FrameNumber>(frames_.function.size() - 1);
  }

 private:
  const CallTree& tree_;
  Frames& frames_;
  std::vector<FrameNumber> numbers_;  // +1; 0: not yet
  std::unordered_map<std::string, std::uint32_t> libraries_;
};

}  // namespace

FoldedTree fold_tree(const CallTree& tree, const std::vector<NodeTotals>& totals, double share) {
  const std::vector<bool> is_large = find_large(tree, totals, share);
  const std::size_t count = tree.nodes().size();
  FoldedTree folded{.nodes = {}, .frames = {}, .folded = {.share = share}, .node_of = std::vector<NodeNumber>(count)};
  FrameNumbers frames(tree, folded.frames);
  std::unordered_map<NodeNumber, std::unordered_set<FrameNumber>> functions_below;  // by node of the folded tree
  const auto append = [&](NodeNumber parent, FrameNumber frame) {
    folded.nodes.parent.push_back(parent);
    folded.nodes.frame.push_back(frame);
    return static_cast<NodeNumber>(folded.nodes.parent.size() - 1);
  };
  for (std::size_t node = 0; node < count; ++node) {
    const CallTree::Node& call = tree.nodes()[node];
    const NodeNumber parent = folded.node_of[call.parent];
    if (is_large[node]) {
      folded.node_of[node] = append(parent, frames.of_function(call.function));
      continue;
    }
    folded.node_of[node] = parent;  // for now
    ++folded.folded.nodes;
    functions_below[parent].insert(call.function);
  }
  std::unordered_map<NodeNumber, NodeNumber> other_of;
  const auto kept = static_cast<NodeNumber>(folded.nodes.parent.size());
  for (NodeNumber node = 0; node < kept; ++node) {
    const auto found = functions_below.find(node);
    if (found == functions_below.end()) continue;
    const std::size_t functions = found->second.size();
    const std::string name = "[other, " + std::to_string(functions) + (functions == 1 ? " function]" : " functions]");
    other_of[node] = append(node, frames.append({.name = name, .library = {}, .file = {}}));
  }
  for (std::size_t node = 0; node < count; ++node) {
    if (!is_large[node]) folded.node_of[node] = other_of.at(folded.node_of[node]);
  }
  return folded;
}

}  // namespace cmt::report
