#include "toolkit/allocations/callers.h"

#include <algorithm>
#include <unordered_map>

#include "toolkit/allocations/stack_tree.h"

namespace cmt::allocations {
namespace {

constexpr LabelId no_label = 0xffffffff;

/// For each node of the stacks that have allocated: the nearest from there outwards that has a label which is no
/// allocation function's; 0: none.
std::vector<StackId> find_labelled(const StackTable& stacks, const Uses& uses, Labels& labels) {
  const StackTree tree(stacks, uses);
  std::vector<StackId> nearest(stacks.node_count());
  const auto counts = [](const Label& label) { return !label.is_allocation; };
  for (StackId node = 1; node < stacks.node_count(); ++node) {
    if (!tree.has(node)) continue;
    const std::span<const Label> found = labels.of_frame(stacks.node(node).frame);
    nearest[node] = std::any_of(found.begin(), found.end(), counts) ? node : nearest[stacks.node(node).parent];
  }
  return nearest;
}

/// A place in a stack: a label of a frame, from which on the callers are looked at.
class StackPlace {
 public:
  explicit StackPlace(StackId node) : node_(node) {}

  /// The label there, after which the place is the one further out; no_label at the end of the stack.
  LabelId next(const StackTable& stacks, const std::vector<StackId>& labelled, Labels& labels) {
    for (node_ = labelled[node_]; node_ != 0; node_ = labelled[stacks.node(node_).parent], index_ = 0) {
      const std::span<const Label> found = labels.of_frame(stacks.node(node_).frame);
      while (index_ < found.size()) {
        const Label& label = found[index_++];
        if (!label.is_allocation) return label.text;
      }
    }
    return no_label;
  }

 private:
  StackId node_;
  std::size_t index_ = 0;
};

struct Part {
  const Use* use;
  StackPlace place;
  LabelId label = no_label;
};

class CallerTree {
 public:
  CallerTree(const StackTable& stacks, const Uses& uses, Labels& labels, const ContributorOptions& options)
      : stacks_(stacks),
        labels_(labels),
        labelled_(find_labelled(stacks, uses, labels)),
        metric_(options.metric),
        least_(least_figure(uses, options)) {}

  /// Takes a step outwards in the stack of a part.
  LabelId advance(Part& part) { return part.label = part.place.next(stacks_, labelled_, labels_); }

  /// The callers of parts that have come as far as the same functions.
  std::vector<Caller> callers_of(std::span<Part> parts, std::size_t level) {
    if (level == caller_levels_max) return {};
    for (Part& part : parts) advance(part);
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.label < b.label; });
    std::vector<Caller> callers;
    for (auto begin = parts.begin(); begin != parts.end() && begin->label != no_label;) {
      const auto end = std::find_if(begin, parts.end(), [&](const Part& part) { return part.label != begin->label; });
      Caller caller{.name = std::string(labels_.text(begin->label)), .use = {}};
      for (auto part = begin; part != end; ++part) caller.use += *part->use;
      if (is_at_least(caller.use.metric(metric_), least_)) {
        caller.callers = callers_of({begin, end}, level + 1);
        callers.push_back(std::move(caller));
      }
      begin = end;
    }
    std::sort(callers.begin(), callers.end(), [this](const Caller& a, const Caller& b) {
      const std::int64_t of_a = a.use.metric(metric_), of_b = b.use.metric(metric_);
      return of_a != of_b ? of_a > of_b : a.name < b.name;
    });
    return callers;
  }

 private:
  const StackTable& stacks_;
  Labels& labels_;
  std::vector<StackId> labelled_;
  Metric metric_;
  double least_;
};

}  // namespace

void add_callers(std::vector<Contributor>& contributors, const StackTable& stacks, const Uses& uses, Labels& labels,
                 const ContributorOptions& options) {
  CallerTree tree(stacks, uses, labels, options);
  std::unordered_map<LabelId, std::vector<Part>> parts_of;
  for (const Contributor& each : contributors) parts_of[each.label];
  for (const Uses::Entry& entry : uses.entries) {
    Part part{&entry.use, StackPlace(entry.key)};
    const auto found = parts_of.find(tree.advance(part));
    if (found != parts_of.end()) found->second.push_back(part);
  }
  for (Contributor& each : contributors) each.callers = tree.callers_of(parts_of[each.label], 0);
}

}  // namespace cmt::allocations
