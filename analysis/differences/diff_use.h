/// The figures of --diff: the allocations of a stack, or of another set, in two traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/use.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

/// The allocations of a stack, or of many, in two traces.
struct DiffUse {
  using Metric = analysis::Metric;
  static constexpr Metric metric_default = Metric::peak;

  Use before;
  Use after;

  DiffUse& operator+=(const DiffUse& more) {
    before += more.before;
    after += more.after;
    return *this;
  }

  /// The second trace's figure less the first one's; 0 if that is not known.
  std::int64_t change(Metric metric) const { return knows(metric) ? after.metric(metric) - before.metric(metric) : 0; }
  bool knows(Metric metric) const { return before.knows(metric) && after.knows(metric); }
  std::optional<std::int64_t> known_change(Metric metric) const {
    return knows(metric) ? std::optional(change(metric)) : std::nullopt;
  }

  /// The change without its sign, so that the largest change sorts first.
  std::int64_t metric(Metric metric) const {
    const std::int64_t by = change(metric);
    return by < 0 ? -by : by;
  }

  bool is_changed() const {
    if (!before.sampled) return !(before == after);
    return !(before.allocated == after.allocated && before.peak == after.peak && before.leaked == after.leaked);
  }
};

template <class Visitor, output::DescribedAs<DiffUse> U>
void describe(Visitor& field, U& use) {
  field("before", use.before, "in the first trace");
  field("after", use.after, "in the second");
}

/// The stacks of two traces, or other sets, with what they have in both.
struct DiffUses {
  struct Entry {
    KeyId key;
    DiffUse use;
    Lifetimes before{};
    Lifetimes after{};
    std::string name{};        ///< where keys are no stacks
    double squared_bytes = 0;  ///< as in Uses, of both
  };
  std::vector<Entry> entries;                             ///< by rising key
  std::uint64_t before_interval = 0, after_interval = 0;  ///< as Uses::interval

  /// States the sampling intervals of the traces. A set without a sample in one of them may be unseen there.
  void set_intervals(std::uint64_t before, std::uint64_t after) {
    before_interval = before;
    after_interval = after;
    for (Entry& entry : entries) fill(entry.use);
  }
  void fill(DiffUse& use) const {
    fill_unseen(use.before, before_interval);
    fill_unseen(use.after, after_interval);
  }
};

}  // namespace cmt::analysis
