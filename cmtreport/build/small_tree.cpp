// Folds the tree of calls until its nodes and their changes fit report_max.

#include <tsl/robin_map.h>

#include <array>
#include <bit>
#include <cassert>
#include <span>
#include <utility>

#include "cmtreport/build/build.h"
#include "cmtreport/model/freed_memory.h"

namespace cmt::report {
namespace {

/// For each folded node its members: the nodes of the whole tree in it that have own allocations, as ChangesByNode
/// counts them.
class Members {
 public:
  Members(const FoldedTree& folded, const ChangesByNode& changes)
      : begins_(folded.nodes.parent.size() + 1), places_(changes.size()) {
    for (std::size_t i = 0; i < changes.size(); ++i) ++begins_[folded.node_of_call(changes.node(i)) + std::size_t{1}];
    for (std::size_t node = 1; node < begins_.size(); ++node) begins_[node] += begins_[node - 1];
    assert(begins_.back() == places_.size());
    std::vector<std::uint32_t> next = begins_;
    for (std::size_t i = 0; i < changes.size(); ++i)
      places_[next[folded.node_of_call(changes.node(i))]++] = static_cast<std::uint32_t>(i);
  }

  std::size_t nodes() const { return begins_.size() - 1; }
  std::span<const std::uint32_t> of(std::size_t node) const {
    return std::span(places_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  std::vector<std::uint32_t> begins_;  // by folded node, in places_; and the end
  std::vector<std::uint32_t> places_;
};

/// The sums of one node at each moment from 1 to the last.
class MomentSums {
 public:
  explicit MomentSums(std::size_t last_moment) : sums_(last_moment + 1), touched_(last_moment / bits + 1) {}

  void add(std::size_t moment, const SparseMeasures& measures) {
    assert(moment < sums_.size());
    touched_[moment / bits] |= std::uint64_t{1} << moment % bits;
    sums_[moment].present |= measures.present;
    measures.add_to(sums_[moment].all);
  }

  /// Calls `visit(measure, moment, sum)` by rising moments for each sum that is not 0, and sets it to 0.
  template <class Visit>
  void take(Visit visit) {
    for (std::size_t word = 0; word < touched_.size(); ++word) {
      for (; touched_[word] != 0; touched_[word] &= touched_[word] - 1) {
        const std::size_t moment = word * bits + static_cast<std::size_t>(std::countr_zero(touched_[word]));
        SparseMeasures& sum = sums_[moment];
        sum.for_each([&](std::size_t measure, std::uint64_t value) {
          if (value != 0) visit(measure, moment, value);
          sum.all.at(measure) = 0;
        });
        sum.present = 0;
      }
    }
  }

 private:
  static constexpr std::size_t bits = 64;

  std::vector<SparseMeasures> sums_;    // a measure that is present may be 0
  std::vector<std::uint64_t> touched_;  // a bit for each moment
};

void append(Deltas& deltas, std::size_t node, std::size_t moment, std::uint64_t value) {
  deltas.node.push_back(static_cast<NodeNumber>(node));
  deltas.moment.push_back(static_cast<std::uint32_t>(moment));
  deltas.value.push_back(static_cast<std::int64_t>(value));
}

/// The changes of folded nodes.
class FoldedChanges {
 public:
  FoldedChanges(const ChangesByNode& changes, std::size_t last_moment) : changes_(changes), sums_(last_moment) {}

  /// Whether the nodes have at most `most` changes. Most nodes have the same members with the next share, so the counts
  /// are kept by members.
  bool are_at_most(std::size_t most, const Members& members) {
    std::size_t count = 0;
    for (std::size_t node = 0; node < members.nodes() && count <= most; ++node) {
      const std::span<const std::uint32_t> places = members.of(node);
      if (places.empty()) continue;
      const auto added = counts_.try_emplace(key_of(places), 0);
      const auto known = added.first;  // in clang 14 a lambda cannot capture a structured binding
      if (added.second) {
        for_each_of(places, [&](std::size_t, std::size_t, std::uint64_t) { ++known.value(); });
      }
      count += known.value();
    }
    return count <= most;
  }

  AllDeltas deltas(const Members& members) {
    AllDeltas deltas;
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      for_each_of(members.of(node), [&](std::size_t measure, std::size_t moment, std::uint64_t value) {
        append(deltas.by_measure[measure], node, moment, value);
      });
    }
    return deltas;
  }

 private:
  /// Identifies a set of members: a hash of all; then the first member (upper 32 bits) and their number.
  using Key = std::array<std::uint64_t, 2>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key[0] ^ key[1]; }
  };

  static Key key_of(std::span<const std::uint32_t> places) {
    std::uint64_t hash = 0;
    for (const std::uint32_t place : places) {
      hash = (hash ^ place) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return {hash, std::uint64_t{places.front()} << 32 | places.size()};
  }

  /// Calls `visit(measure, moment, value)` with each change of these nodes' sums, by rising moments.
  template <class Visit>
  void for_each_of(std::span<const std::uint32_t> places, Visit visit) {
    for (const std::uint32_t place : places)
      changes_.for_each(place, [&](std::size_t moment, const SparseMeasures& more) { sums_.add(moment, more); });
    sums_.take(visit);
  }

  const ChangesByNode& changes_;
  MomentSums sums_;
  tsl::robin_map<Key, std::uint32_t, KeyHash> counts_;
};

}  // namespace

/// Tries rising shares, since the number of changes in folded nodes is known only after folding.
SmallTree fold_until_small(const CallTree& tree, const TotalsByNode& totals, const ChangesByNode& changes,
                           std::size_t last_moment) {
  const Folding folding(tree, totals);
  constexpr double kept_part = 0.6, more = 1.25;  // of the budget, for the nodes that are kept; of a share, for a retry
  const auto part = [&](std::uint64_t number) {
    return static_cast<std::uint64_t>(static_cast<double>(number) * kept_part);
  };
  const bool fits = totals.size() <= report_max.nodes;
  double share = folding.least_share(fits ? FoldBudget{.nodes = report_max.nodes, .changes = report_max.changes}
                                          : FoldBudget{part(report_max.nodes), part(report_max.changes)});
  FoldedChanges folded_changes(changes, last_moment);
  for (;; share *= more) {
    FoldedTree folded = folding.fold_nodes(share);
    const bool is_last = share > 0.5;
    if (folded.nodes.parent.size() > report_max.nodes && !is_last) continue;
    const Members members(folded, changes);
    if (!is_last && !folded_changes.are_at_most(report_max.changes, members)) continue;
    folding.name_frames(folded);
    give_back_freed_memory();
    return {std::move(folded), folded_changes.deltas(members)};
  }
}

}  // namespace cmt::report
