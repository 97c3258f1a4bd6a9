// Writes the options of a cell as a command line has them, and groups cells by them.
#include "cmtreplay/matrix/cell_options.h"

#include <algorithm>

#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

/// The options that say how often a cell was run. The numbers of memory and latency runs follow from the others.
std::string plan_text(const CellPlan& plan) {
  constexpr std::uint64_t second = 1'000'000'000;
  std::string text = "--budget=" + std::to_string(plan.budget_ns / second) + "s";
  if (plan.runs != 0) text = "--runs=" + std::to_string(plan.runs);
  if (plan.runs == 10 && plan.memory_runs == 3 && plan.latency_runs == 1) text = "--suite";
  if (plan.runs == 5 && plan.memory_runs == 1) text = "--suite=quick";
  if (plan.seed != 1) text += " --seed=" + std::to_string(plan.seed);
  if (plan.timeout_s != 60) text += " --timeout=" + std::to_string(plan.timeout_s) + "s";
  if (plan.operations != "auto") text += " --" + plan.operations;
  return text;
}

std::string short_number(double number) {
  std::string text = output::fixed(number, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

bool has_same_options(const Cell& a, const Cell& b) {
  return a.verification || b.verification || (a.mode == b.mode && a.plan == b.plan);
}

std::string options_text(const Cell& cell) {
  const CellMode& mode = cell.mode;
  std::string text = cell.plan ? plan_text(*cell.plan) : "of an older version";
  if (mode.one_thread) text += " --threads=1";
  if (mode.order == "strict") text += " --order=strict";
  if (mode.pace == 1) text += " --pace=real";
  if (mode.pace > 0 && mode.pace != 1) text += " --pace=x" + short_number(mode.pace);
  if (mode.clock == "recorded") text += " --clock=recorded";
  if (mode.clock == "none" && mode.pace == 0) text += " --clock=system";
  if (mode.touch != "page") text += " --touch=" + mode.touch;
  if (mode.give_back) text += " --give-back=" + *mode.give_back;
  if (mode.cpus) text += " --pin=" + *mode.cpus;
  if (mode.huge_pages) text += " --huge-pages=" + *mode.huge_pages;
  return text;
}

std::vector<Cell> option_sets(const std::vector<Cell>& cells) {
  std::vector<Cell> sets;
  for (const Cell& cell : cells) {
    const auto is_same = [&cell](const Cell& other) { return has_same_options(cell, other); };
    if (!cell.verification && std::none_of(sets.begin(), sets.end(), is_same)) sets.push_back(cell);
  }
  return sets;
}

std::string option_sets_text(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& set : option_sets(cells)) {
    const auto is_of_set = [&set](const Cell& cell) { return !cell.verification && has_same_options(cell, set); };
    const auto count = static_cast<std::uint64_t>(std::count_if(cells.begin(), cells.end(), is_of_set));
    text += (text.empty() ? "" : ", ") + options_text(set) + " (" + output::counted(count, "cell") + ")";
  }
  return text;
}

std::size_t keep_options_of(std::vector<Cell>& cells, const Cell& wanted) {
  return std::erase_if(cells, [&wanted](const Cell& cell) { return !has_same_options(cell, wanted); });
}

}  // namespace cmt::replay
