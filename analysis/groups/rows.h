/// Parts of the tables of groups, as text and as CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/groups/group.h"
#include "libcmt/text/utf8.h"

namespace cmt::analysis {

/// Names as a table of text has them: functions have short ones (function_names/short_name.h), unless two in the table
/// would be the same. Templates have names of hundreds of characters.
class TableNames {
 public:
  /// `groups`: of the table, with their callers.
  template <class Groups>
  TableNames(By by, const Groups& groups) : is_of_functions_(by == By::function || by == By::caller) {
    if (is_of_functions_) add(groups);
  }

  std::string text(const std::string& name) const;

 private:
  template <class Groups>
  void add(const Groups& groups) {
    for (const auto& each : groups) {
      add_name(each.name);
      add(each.callers);
    }
  }
  void add_name(const std::string& name);

  bool is_of_functions_;
  std::unordered_map<std::string, std::string> full_;  // by the short name; empty: of several
};

/// Calls add_row(name, figures) for each row of a tree of callers. If a function has several callers, their rows are
/// indented by one level more.
template <class Figures, class AddRow>
void add_callers_rows(const TableNames& names, const std::vector<CallerOf<Figures>>& callers, std::size_t level,
                      const AddRow& add_row) {
  for (const CallerOf<Figures>& each : callers) {
    add_row(std::string(2 * level, ' ') + "<- " + names.text(each.name), each.use);
    add_callers_rows(names, each.callers, level + (each.callers.size() > 1 ? 1 : 0), add_row);
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
