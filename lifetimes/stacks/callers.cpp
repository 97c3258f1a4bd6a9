#include "lifetimes/stacks/callers.h"

#include <algorithm>
#include <unordered_map>

namespace cmt::lifetimes {
namespace {

constexpr LabelId no_label = 0xffffffff;

/// A place in a stack: a label of a frame, from which on the callers are looked at.
class StackPlace {
 public:
  explicit StackPlace(StackId node) : node_(node) {}

  /// The label there, after which the place is the one further out; no_label at the end of the stack.
  LabelId next(const StackTable& stacks, Labels& labels, bool skips_allocation) {
    for (; node_ != 0; node_ = stacks.node(node_).parent, index_ = 0) {
      const std::span<const Label> found = labels.of_frame(stacks.node(node_).frame);
      while (index_ < found.size()) {
        const Label& label = found[index_++];
        if (!skips_allocation || !label.is_allocation) return label.text;
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
  CallerTree(const StackTable& stacks, Labels& labels, const ContributorOptions& options, std::int64_t least)
      : stacks_(stacks), labels_(labels), options_(options), least_(least) {}

  /// The callers of parts that have come as far as the same functions.
  std::vector<Caller> callers_of(std::span<Part> parts, std::size_t level) {
    if (level == caller_levels_max) return {};
    for (Part& part : parts) part.label = part.place.next(stacks_, labels_, true);
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.label < b.label; });
    std::vector<Caller> callers;
    for (auto begin = parts.begin(); begin != parts.end() && begin->label != no_label;) {
      const auto end = std::find_if(begin, parts.end(), [&](const Part& part) { return part.label != begin->label; });
      Caller caller{.name = std::string(labels_.text(begin->label)), .use = {}};
      for (auto part = begin; part != end; ++part) caller.use += *part->use;
      if (caller.use.metric(options_.metric) >= least_) {
        caller.callers = callers_of({begin, end}, level + 1);
        callers.push_back(std::move(caller));
      }
      begin = end;
    }
    std::sort(callers.begin(), callers.end(), [this](const Caller& a, const Caller& b) {
      const std::int64_t of_a = a.use.metric(options_.metric), of_b = b.use.metric(options_.metric);
      return of_a != of_b ? of_a > of_b : a.name < b.name;
    });
    return callers;
  }

 private:
  const StackTable& stacks_;
  Labels& labels_;
  const ContributorOptions& options_;
  std::int64_t least_;
};

}  // namespace

void add_callers(std::vector<Contributor>& contributors, const StackTable& stacks, const Uses& uses, Labels& labels,
                 const ContributorOptions& options) {
  std::unordered_map<std::string, std::vector<Part>> parts_of;
  for (const Contributor& each : contributors) parts_of[each.name];
  Use total;
  for (const Uses::Entry& entry : uses.entries) {
    total += entry.use;
    Part part{&entry.use, StackPlace(entry.key)};
    const LabelId own = part.place.next(stacks, labels, true);
    if (own == no_label) continue;
    const auto found = parts_of.find(std::string(labels.text(own)));
    if (found != parts_of.end()) found->second.push_back(part);
  }
  const auto least = static_cast<std::int64_t>(options.min * static_cast<double>(total.metric(options.metric)));
  CallerTree tree(stacks, labels, options, std::max<std::int64_t>(least, 1));
  for (Contributor& each : contributors) each.callers = tree.callers_of(parts_of[each.name], 0);
}

}  // namespace cmt::lifetimes
