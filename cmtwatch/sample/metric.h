#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cmt::watch {

/// A figure of a process's memory. All are bytes.
enum class Metric {
  pss,   ///< proportional set: every resident page divided by the number of processes that map it; may be added up
  rss,   ///< resident set
  uss,   ///< unique set: resident pages that no other process maps
  anon,  ///< resident pages of no file
  swap,  ///< swapped out
  vm,    ///< address space
};

constexpr const char* metric_names = "pss, rss, uss, anon, swap or vm";

std::string_view name_of(Metric metric);
std::optional<Metric> metric_named(std::string_view name);

/// Whether the kernel walks page tables for it (smaps_rollup): 65 ms a GB of small pages. The others cost 10 us.
bool is_dear(Metric metric);

}  // namespace cmt::watch
