#include "cmtwatch/sample/metric.h"

#include <array>

namespace cmt::watch {
namespace {

constexpr std::array<std::string_view, 6> all_names{"pss", "rss", "uss", "anon", "swap", "vm"};

}  // namespace

std::string_view name_of(Metric metric) { return all_names[static_cast<std::size_t>(metric)]; }

std::optional<Metric> metric_named(std::string_view name) {
  for (std::size_t i = 0; i < all_names.size(); ++i) {
    if (all_names[i] == name) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

bool is_dear(Metric metric) { return metric == Metric::pss || metric == Metric::uss; }

}  // namespace cmt::watch
