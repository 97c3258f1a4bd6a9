// Folds the tree of calls until it and what its nodes did are small enough.

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "cmtreport/build/build.h"

namespace cmt::report {
namespace {

/// The nodes of the whole tree with own allocations, as ChangesByNode counts them, by the folded node that each is in.
struct Members {
  Members(const FoldedTree& folded, const ChangesByNode& changes)
      : begins(folded.nodes.parent.size() + 1), places(changes.size()) {
    for (std::size_t i = 0; i < changes.size(); ++i) ++begins[folded.node_of[changes.node(i)] + std::size_t{1}];
    for (std::size_t node = 1; node < begins.size(); ++node) begins[node] += begins[node - 1];
    std::vector<std::uint32_t> next = begins;
    for (std::size_t i = 0; i < changes.size(); ++i)
      places[next[folded.node_of[changes.node(i)]]++] = static_cast<std::uint32_t>(i);
  }

  std::vector<std::uint32_t> begins;  // by folded node, in places; and the end
  std::vector<std::uint32_t> places;
};

/// The sums of one node at each moment.
class MomentSums {
 public:
  explicit MomentSums(std::size_t moments) : sums_(moments + 1), touched_(moments / bits + 1) {}

  void add(std::size_t moment, const SparseMeasures& measures) {
    touched_[moment / bits] |= std::uint64_t{1} << moment % bits;
    measures.add_to(sums_[moment]);
  }

  /// Calls `visit(moment, sums)` by rising moments for those that were added to, and sets them to 0.
  template <class Visit>
  void take(Visit visit) {
    for (std::size_t word = 0; word < touched_.size(); ++word) {
      for (; touched_[word] != 0; touched_[word] &= touched_[word] - 1) {
        const std::size_t moment = word * bits + static_cast<std::size_t>(std::countr_zero(touched_[word]));
        visit(moment, sums_[moment]);
        sums_[moment] = {};
      }
    }
  }

 private:
  static constexpr std::size_t bits = 64;

  std::vector<Measures> sums_;
  std::vector<std::uint64_t> touched_;  // a bit for each moment
};

void append(Deltas& deltas, std::size_t node, std::size_t moment, std::uint64_t value) {
  deltas.node.push_back(static_cast<NodeNumber>(node));
  deltas.moment.push_back(static_cast<std::uint32_t>(moment));
  deltas.value.push_back(static_cast<std::int64_t>(value));
}

/// The changes of the folded nodes, or nothing where there are more than `most`.
std::optional<AllDeltas> deltas_of(const FoldedTree& folded, const ChangesByNode& changes, std::size_t moments,
                                   std::size_t most) {
  const Members members(folded, changes);
  MomentSums sums(moments);
  AllDeltas deltas;
  std::size_t count = 0;
  for (std::size_t node = 0; node + 1 < members.begins.size(); ++node) {
    for (std::uint32_t at = members.begins[node]; at != members.begins[node + 1]; ++at)
      changes.for_each(members.places[at],
                       [&](std::size_t moment, const SparseMeasures& more) { sums.add(moment, more); });
    sums.take([&](std::size_t moment, const Measures& sum) {
      for (std::size_t i = 0; i < measure_count; ++i) {
        if (sum.at(i) == 0) continue;
        ++count;
        append(deltas.by_measure[i], node, moment, sum.at(i));
      }
    });
    if (count > most) return std::nullopt;
  }
  return deltas;
}

}  // namespace

/// What the functions in its folded nodes change is not known beforehand.
SmallTree fold_until_small(const CallTree& tree, const TotalsByNode& totals, const ChangesByNode& changes,
                           std::size_t moments) {
  const Folding folding(tree, totals);
  constexpr double kept_part = 0.6, more = 1.25;  // of the budget, for the nodes that are kept; of a share, for a retry
  const auto part = [&](std::uint64_t number) {
    return static_cast<std::uint64_t>(static_cast<double>(number) * kept_part);
  };
  const bool fits = totals.size() <= report_max.nodes;
  double share = folding.least_share(fits ? FoldBudget{.nodes = report_max.nodes, .changes = report_max.changes}
                                          : FoldBudget{part(report_max.nodes), part(report_max.changes)});
  for (;; share *= more) {
    FoldedTree folded = folding.fold_nodes(share);
    const bool is_last = share > 0.5;
    if (folded.nodes.parent.size() > report_max.nodes && !is_last) continue;
    auto deltas = deltas_of(folded, changes, moments, is_last ? ~std::size_t{0} : report_max.changes);
    if (!deltas) continue;
    folding.name_frames(folded);
    return {std::move(folded), std::move(*deltas)};
  }
}

}  // namespace cmt::report
