// Writes stacks as lines of text and as a cell of CSV.
#include "analysis/groups/rows.h"

#include "analysis/groups/stack_ends.h"
#include "analysis/stacks/function_names/short_name.h"
#include "toolkit/output/numbers.h"

namespace cmt::analysis {
namespace {

std::string line_text(const StackLine& line) {
  std::string text = line.function;
  if (line.file) text += " at " + *line.file + (line.line ? ":" + std::to_string(*line.line) : "");
  const bool has_folder = line.file && line.file->starts_with(line.library + "/");  // of Python: the same folder
  return text::to_line(has_folder ? text : text + " in " + line.library);
}

/// The short name, but for functions of scripts, whose names end with their places. Names of the same function in
/// several libraries end with that of the library (Labels::intern()).
std::string table_name(const std::string& name) {
  if (has_place(name)) return name;
  const std::size_t library = name.ends_with(']') ? name.rfind(" [") : name.npos;
  if (library == name.npos || name.compare(library, 8, " [clone ") == 0) return short_name(name);
  return short_name(std::string_view(name).substr(0, library)) + name.substr(library);
}

}  // namespace

void TableNames::add_name(const std::string& name) {
  const auto [at, is_new] = full_.try_emplace(table_name(name), name);
  if (!is_new && at->second != name) at->second.clear();
}

std::string TableNames::text(const std::string& name) const {
  if (!is_of_functions_) return text::to_line(name);
  std::string brief = table_name(name);
  const auto found = full_.find(brief);
  return text::to_line(found != full_.end() && found->second == name ? brief : name);
}

std::string largest_stack_text(const std::string& name, const std::vector<StackLine>& stack, std::uint64_t left_out) {
  if (stack.empty()) return {};
  std::string text = "\nthe largest stack of " + text::to_line(name) + ":\n";
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (i == inner_lines_max && left_out != 0) text += "  ... " + output::with_commas(left_out) + " more ...\n";
    text += "  " + line_text(stack[i]) + "\n";
  }
  return text;
}

std::string stack_cell(const std::vector<StackLine>& stack, std::uint64_t left_out) {
  std::string cell;
  for (std::size_t i = stack.size(); i-- != 0;) {
    cell += (cell.empty() ? "" : ";") + part_text(stack[i].function);
    if (i == inner_lines_max && left_out != 0) cell += ";...";
  }
  return cell;
}

}  // namespace cmt::analysis
