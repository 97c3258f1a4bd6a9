#include "cmtwatch/recording/measures.h"

#include <algorithm>
#include <array>
#include <utility>

#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

constexpr std::array<std::pair<std::string_view, bool Measures::*>, 8> measures_by_name{{
    {"mappings", &Measures::mappings},
    {"stacks", &Measures::stacks},
    {"totals", &Measures::totals},
    {"io", &Measures::io},
    {"oom", &Measures::oom},
    {"system", &Measures::system},
    {"disks", &Measures::disks},
    {"counters", &Measures::counters},
}};

bool choose(std::string_view name, Measures& measures) {
  for (const auto& [known, measure] : measures_by_name) {
    if (name == known || name == "all") measures.*measure = true;
  }
  return name == "all" || name == "statm" ||
         std::any_of(measures_by_name.begin(), measures_by_name.end(),
                     [name](const auto& entry) { return entry.first == name; });
}

}  // namespace

std::optional<Measures> parse_measures(std::string_view names) {
  Measures measures;
  for (const auto& [name, measure] : measures_by_name) measures.*measure = false;
  for (;;) {
    const auto comma = names.find(',');
    if (!choose(names.substr(0, comma), measures)) return std::nullopt;
    if (comma == names.npos) break;
    names.remove_prefix(comma + 1);
  }
  measures.mappings = measures.mappings || measures.stacks;
  return measures;
}

std::string names_of(const Measures& measures) {
  std::string names = "statm";
  for (const auto& [name, measure] : measures_by_name) {
    if (measures.*measure) names.append(",").append(name);
  }
  return names;
}

std::string CountersMissing::text() const {
  if (processes == asked) return reason;
  return output::with_commas(processes) + " of " + output::with_commas(asked) + " processes: " + reason;
}

}  // namespace cmt::watch
