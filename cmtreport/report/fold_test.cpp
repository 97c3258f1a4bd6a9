#include "cmtreport/report/fold.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>

namespace cmt::report {
namespace {

/// main calls large, which allocates, and 40 functions that each call make; every fourth allocates itself, too.
struct SmallCalls {
  SmallCalls() {
    StackTable stacks;
    const FrameId main = frame(stacks, "main"), make = frame(stacks, "make");
    const StackId root = stacks.add_node({0, main});
    std::vector<std::uint64_t> bytes(2);
    const auto add = [&](StackId parent, FrameId function, std::uint64_t size) {
      const StackId id = stacks.add_node({parent, function});
      bytes.resize(id + std::size_t{1});
      bytes[id] = size;
      return id;
    };
    add(root, frame(stacks, "large"), 10'000);
    for (int i = 0; i < 40; ++i) {
      const StackId caller = add(root, frame(stacks, "caller" + std::to_string(i)), i % 4 == 0 ? 1 : 0);
      add(caller, make, 10);
    }
    call_of_stack = tree.add_stacks(stacks.nodes(), stacks, bytes, {});
    tree.finish();
    totals.emplace(tree.nodes().size());
    std::map<CallId, NodeTotals> by_call;
    for (StackId id = 0; id < bytes.size(); ++id) {
      if (bytes[id] == 0) continue;
      SparseMeasures measures;
      measures.set(Measure::allocated_bytes, bytes[id]);
      by_call[call_of_stack[id]].add(1, measures);
    }
    for (const auto& [call, own] : by_call) totals->append(call, own);
  }

  static FrameId frame(StackTable& stacks, const std::string& function) {
    const FrameId id = stacks.add_frame({0, 4096U * stacks.frame_count(), false});
    const FrameName name{function, {}, 0};
    stacks.set_names(id, {&name, 1});
    return id;
  }

  /// The bytes of each node of a folded tree, by the names from below the root on.
  std::map<std::string, std::uint64_t> bytes_by_path(const FoldedTree& folded) const {
    std::vector<std::string> paths{""};
    for (NodeNumber node = 1; node < folded.nodes.parent.size(); ++node)
      paths.push_back(paths[folded.nodes.parent[node]] + "/" + folded.frames.function[folded.nodes.frame[node]]);
    std::map<std::string, std::uint64_t> bytes;
    totals->for_each([&](CallId call, const NodeTotals& own) {
      bytes[paths[folded.node_of_call(call)]] += own.sum[Measure::allocated_bytes];
    });
    return bytes;
  }

  CallTree tree;
  std::vector<CallId> call_of_stack;
  std::optional<TotalsByNode> totals;
};

}  // namespace

TEST_CASE("folding: functions among what is folded are told apart, unless they are small even for that") {
  const SmallCalls calls;
  const FoldedTree folded = Folding(calls.tree, *calls.totals).fold(0.01);
  const std::map<std::string, std::uint64_t> expected{
      {"/main/large", 10'000}, {"/main/[other, 11 functions]", 10}, {"/main/[other, 11 functions]/make", 400}};
  CHECK(calls.bytes_by_path(folded) == expected);
  CHECK(folded.folded.nodes == 81);  // and [unknown], which has nothing
  for (NodeNumber node = 1; node < folded.nodes.parent.size(); ++node) CHECK(folded.nodes.parent[node] < node);
}

TEST_CASE("folding: a budget that the tree fits folds nothing, and a smaller one gives the share that fits it") {
  const SmallCalls calls;
  const Folding folding(calls.tree, *calls.totals);
  const FoldedTree whole = folding.fold(folding.least_share({.nodes = 1000, .changes = 1000}));
  CHECK(whole.folded.nodes == 1);  // [unknown]
  CHECK(calls.bytes_by_path(whole).size() == 51);
  const double share = folding.least_share({.nodes = 10, .changes = 1000});
  CHECK(calls.bytes_by_path(folding.fold(share)).contains("/main/large"));
  CHECK(folding.fold(share).folded.nodes == 81);
  CHECK(folding.least_share({.nodes = 1000, .changes = 1}) == doctest::Approx(share));
}

TEST_CASE("totals of a node: a measure that changes several times up to a moment is one change") {
  NodeTotals totals;
  SparseMeasures measures;
  measures.set(Measure::allocated_bytes, 8);
  totals.add(1, measures);
  measures.set(Measure::allocated_blocks, 1);
  totals.add(1, measures);
  totals.add(3, measures);
  CHECK(totals.changes == 4);
  CHECK(totals.sum[Measure::allocated_bytes] == 24);
}

TEST_CASE("totals by node: what is judged, the peak and the changes come back, of nodes that are far apart too") {
  TotalsByNode totals(1u << 30);
  NodeTotals own;
  own.sum[Measure::leaked_bytes] = ~std::uint64_t{0};
  own.sum[Measure::allocated_blocks] = 300;
  own.peak_bytes = 128;
  own.peak_blocks = 2;
  own.changes = 7;
  constexpr CallId far_away{1u << 29}, last{~0u};
  for (const CallId call : {CallId{0}, CallId{1}, far_away}) totals.append(call, own);
  totals.append(last, {});
  std::vector<CallId> calls;
  totals.for_each([&](CallId call, const NodeTotals& found) {
    calls.push_back(call);
    if (call == last) {
      CHECK(found.figure(0) == 0);
      return;
    }
    for (std::size_t i = 0; i < FoldFigures().size(); ++i) CHECK(found.figure(i) == own.figure(i));
    CHECK(found.peak_blocks == 2);
    CHECK(found.changes == 7);
  });
  CHECK(calls == std::vector{CallId{0}, CallId{1}, far_away, last});
  calls.clear();
  totals.for_each_figure(8, [&](CallId call, std::uint64_t peak_bytes) {
    calls.push_back(call);
    CHECK(peak_bytes == 128);
  });
  CHECK(calls == std::vector{CallId{0}, CallId{1}, far_away});
}

}  // namespace cmt::report
