/// Parts of the tables of groups, as text and as CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/groups/group.h"
#include "libcmt/text/utf8.h"

namespace cmt::analysis {

/// Calls add_row(name, figures) for each row of a tree of callers. If a function has several callers, their rows are
/// indented by one level more.
template <class Figures, class AddRow>
void add_callers_rows(const std::vector<CallerOf<Figures>>& callers, std::size_t level, const AddRow& add_row) {
  for (const CallerOf<Figures>& each : callers) {
    add_row(std::string(2 * level, ' ') + "<- " + text::to_line(each.name), each.use);
    add_callers_rows(each.callers, level + (each.callers.size() > 1 ? 1 : 0), add_row);
  }
}

/// Calls add_row(path, figures) for each caller, with the path to it: "f <- g <- main".
template <class Figures, class AddRow>
void add_caller_paths(const std::string& path, const std::vector<CallerOf<Figures>>& callers, const AddRow& add_row) {
  for (const CallerOf<Figures>& each : callers) {
    const std::string each_path = path + " <- " + text::to_line(each.name);
    add_row(each_path, each.use);
    add_caller_paths(each_path, each.callers, add_row);
  }
}

/// Returns "the largest stack of f:" and its lines; an empty text if there are none.
std::string largest_stack_text(const std::string& name, const std::vector<StackLine>& stack, std::uint64_t left_out);

/// Returns a stack as a cell of CSV, outermost function first: "main;f;g".
std::string stack_cell(const std::vector<StackLine>& stack, std::uint64_t left_out);

/// Prefixes the keys of the fields that it passes on.
template <class Visitor>
struct Prefixed {
  Visitor& field;
  std::string prefix;
  template <class T>
  void operator()(std::string_view key, const T& value, std::string_view doc) {
    if constexpr (output::detail::is_a<T, output::Renamed>)
      field(prefix + std::string(key), output::renamed(value.value, prefix + value.old_key), doc);
    else
      field(prefix + std::string(key), value, doc);
  }
};

}  // namespace cmt::analysis
