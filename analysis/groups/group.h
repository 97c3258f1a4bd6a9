/// Sets of allocations that are put together by function, line or library, for the reports of several tools.
///
/// `Figures` is a struct of figures: Use (use.h), DiffUse or PageUse. It has:
///
/// - a type Metric and a value `metric_default` of it;
/// - `+=`;
/// - metric(Metric), the number by which sets are compared.
///
/// `SomeUses` is a struct of the figures of stacks. Its vector `entries`, by rising `key`, has a member `use` of type
/// Figures.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/stacks/labels.h"
#include "analysis/stacks/native_frames.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

/// A function of a stack.
struct StackLine {
  std::string function;
  std::string library;
  std::optional<std::string> file;
  std::optional<std::uint64_t> line;
};

template <class Visitor, output::DescribedAs<StackLine> S>
void describe(Visitor& field, S& line) {
  field("function", line.function, "its name, or else its library with an offset, or else an address");
  field("library", line.library, "the file's name without its folder");
  field("file", line.file, "of the source");
  field("line", line.line, "in that file");
}

/// A function in a tree of callers, with the figures of the allocations that come from there.
template <class Figures>
struct CallerOf {
  std::string name;
  Figures use;
  std::vector<CallerOf> callers{};  ///< the largest first; those below --min are left out
};

/// The most levels of a tree of callers. Without a bound, a recursive function would have as many as it is deep.
inline constexpr std::size_t caller_levels_max = 40;

template <class Visitor, class Figures>
void describe(Visitor& field, const CallerOf<Figures>& caller) {
  field("name", caller.name, "of the function that calls");
  field("use", caller.use, "of allocations that come from there");
  field("callers", caller.callers, "who calls it there, as here; 40 levels at most");
}

/// A function, line, library, or another set of allocations.
template <class Figures>
struct GroupOf {
  std::string name;
  LabelId label{};  ///< identifies a function, a line or a library, even if names are the same
  Figures self;
  Figures inclusive;
  std::vector<CallerOf<Figures>> callers{};
  StackId largest = 0;  ///< its own stack with most by the metric; if it has none, the largest stack through it
  std::vector<StackLine> stack{};
  std::uint64_t stack_left_out = 0;
};

template <class Visitor, class Figures>
void describe_figures(Visitor& field, const GroupOf<Figures>& group) {
  field("name", group.name, "of the function, line or library; \"thread 3 (name)\"; sizes; or a mark's label");
  field("self", group.self, "of stacks of which it is the innermost that is no allocation function");
  field("inclusive", group.inclusive, "of stacks that it is anywhere in; without stacks the same as self");
}

template <class Visitor, class Figures>
void describe_stack(Visitor& field, const GroupOf<Figures>& group) {
  field("callers", group.callers, "by caller: who calls it, the largest first");
  field("stack", group.stack,
        "the largest of its stacks by sorted_by, the innermost function first; of more than 50, the inner 40 and the "
        "outer 10");
  field("stack_left_out", group.stack_left_out, "functions between these");
}

/// How groups are formed, chosen and ordered.
template <class Figures>
struct GroupOptions {
  By by = By::function;
  typename Figures::Metric metric = Figures::metric_default;
  bool inclusive = false;  ///< sorts by what functions have with those that they call
  ChargeRule charges{};
  NativeFrames native = NativeFrames::fold;
  std::string focus{};    ///< only stacks with a function that matches; empty: all
  std::string ignored{};  ///< no stacks with a function that matches
  std::string hidden{};   ///< functions that are taken out of stacks
  double min = 0;         ///< groups and callers below this share of the total are left out
  std::size_t top = 0;    ///< how many groups; 0: all
};

/// Returns the property of which the labels of stacks are made.
inline Key key_of(By by) { return by == By::line ? Key::line : by == By::library ? Key::library : Key::function; }

/// Returns the least figure that --min lets through: a share of the sum of all figures without their signs. 0: all.
template <class SomeUses, class Figures>
double least_figure(const SomeUses& uses, const GroupOptions<Figures>& options) {
  double sum = 0;
  for (const auto& entry : uses.entries) sum += std::abs(static_cast<double>(entry.use.metric(options.metric)));
  return options.min * sum;
}
inline bool is_at_least(std::int64_t figure, double least) {
  return static_cast<double>(figure < 0 ? -figure : figure) >= least;
}

}  // namespace cmt::analysis
