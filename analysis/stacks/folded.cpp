// Writes folded stacks in one walk over the tree of functions.
#include "analysis/stacks/folded.h"

#include <cassert>
#include <utility>
#include <vector>

#include "analysis/stacks/function_tree.h"

namespace cmt::analysis {

void write_folded(const StackTable& stacks, const Uses& uses, Metric metric, const std::string& hidden,
                  const std::function<void(const std::string&)>& write) {
  constexpr std::size_t enough = 65536, line_max = std::size_t{1} << 18;
  Labels labels(stacks, Key::function, {}, hidden);
  const FunctionTree functions(stacks, uses, labels);
  const std::vector<std::int64_t> figures = functions.figures(uses, metric);
  std::vector<std::string> parts;  // by label
  parts.reserve(labels.count());
  for (std::uint32_t i = 0; i < labels.count(); ++i) parts.push_back(part_text(labels.text(LabelId{i})));
  std::vector<std::size_t> sizes;  // of the line, before each of its functions
  std::string line, text;
  std::int64_t deeper = 0;  // the figures of functions that the line has no room for
  const auto enter = [&](FunctionTree::NodeId node) {
    sizes.push_back(line.size());
    if (line.size() >= line_max) {  // long names: this function and those further inside are one
      deeper += figures[node];
      return;
    }
    if (!line.empty()) line += ';';
    line += parts[index_of(functions.label(node))];
    if (figures[node] > 0) text.append(line).append(" ").append(std::to_string(figures[node])).append("\n");
    if (text.size() > enough) write(std::exchange(text, {}));
  };
  functions.walk(enter, [&](FunctionTree::NodeId) {
    if (sizes.back() < line_max && line.size() >= line_max) {
      if (deeper > 0) text.append(line).append(";[deeper] ").append(std::to_string(deeper)).append("\n");
      deeper = 0;
    }
    line.resize(sizes.back());
    sizes.pop_back();
  });
  assert(line.empty() && sizes.empty());
  if (!text.empty()) write(text);
}

}  // namespace cmt::analysis
