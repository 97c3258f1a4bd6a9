/// The report of overhead --by: lists the holders of the pages at one moment, by function, line or library, or by
/// thread, size or phase. A block is charged as an allocation is (contributors.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/groups/group.h"
#include "analysis/held_pages/page_use.h"
#include "analysis/stacks/contributors.h"
#include "toolkit/trace/pools.h"

namespace cmt::analysis {

using PageHolder = GroupOf<PageUse>;

template <class Visitor>
void describe(Visitor& field, const PageHolder& holder) {
  describe_figures(field, holder);
  describe_stack(field, holder);
}

struct PageHolders {
  std::string name;  ///< of the file
  By by = By::function;
  PageMetric metric = PageMetric::unused;
  bool inclusive = false;
  std::string at;  ///< the moment, as --at names it
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::optional<std::string> pool{};  ///< empty: malloc
  std::optional<std::uint64_t> arena_bytes{};
  std::uint64_t page_size = 0;
  std::uint64_t stacks = 0;
  PageUse total;
  PageUse of_unknown_stacks;
  std::vector<PageHolder> holders;
  std::uint64_t left_out = 0;
  std::optional<std::vector<trace::PoolCount>> pools_not_counted{};

  std::uint64_t pages() const { return total.page_bytes / page_size; }
  std::uint64_t separable_pages() const {
    return total.separable_bytes > 0 ? static_cast<std::uint64_t>(total.separable_bytes) / page_size : 0;
  }
};

inline constexpr std::string_view page_holders_schema = "cmt.page_holders/1";

template <class Visitor>
void describe(Visitor& field, const PageHolders& report) {
  field("schema", page_holders_schema, "the name and version of this form");
  field("name", report.name, "the file's name without its folder");
  field("by", name(report.by), "function, caller, line, library, thread, size or phase");
  field("sorted_by", name(report.metric),
        "unused, pages, sole, live, blocks, old-pages, pinned or separable: by unused_bytes, page_bytes, sole_bytes, "
        "live_bytes, blocks, old_page_bytes, pinned_pages or separable_bytes");
  field("sorted_inclusive", report.inclusive, "whether by inclusive, or by self");
  field("at", report.at,
        "which moment: unused (the sample with the most unused bytes on pages, or in the pool's arenas), peak, or that "
        "of --at");
  field("event", report.event, "the last event before that moment, counted from 1");
  field("time_ns", output::nullable(report.time_ns), "its time since the recording began");
  field("defects", report.defects, "defects found in the trace up to there");
  field("truncated", report.truncated, "whether the trace breaks off");
  field("pool", output::omit_if_empty(report.pool), "with --pool: its name");
  field("arena_bytes", output::omit_if_empty(report.arena_bytes), "of the pool's arenas, where these were recorded");
  field("page_size_bytes", report.page_size, "bytes of a page; 0 of a pool");
  field("stacks", report.stacks, "different stacks whose blocks are live");
  field("total", report.total, "of all stacks");
  field("unknown_stacks", report.of_unknown_stacks, "of blocks whose stack is not known");
  field("holders", report.holders, "the largest first");
  field("holders_left_out", report.left_out, "how many more there are, beyond --top and below --min");
  field("pools_not_counted", output::omit_if_empty(report.pools_not_counted),
        "the pools that have events up to the moment, which are in none of these figures (overhead --pool)");
}

/// Returns the least figure that --min lets through, a share of the total. The sum over all stacks would not do: pages
/// that one stack has alone add up to less than those that a function has alone.
double least_figure(const PageUses& uses, const GroupOptions<PageUse>& options);

/// Returns the blocks of `uses` by holder. `stacks` has the frames' names. The caller sets the report's name, moment,
/// defects and truncation. The sole_bytes of callers are unknown. If the page size of `uses` is 0, so are all figures
/// of pages.
PageHolders find_page_holders(const StackTable& stacks, const PageUses& uses, const GroupOptions<PageUse>& options);

std::string to_text(const PageHolders& report);
std::string to_csv(const PageHolders& report);

}  // namespace cmt::analysis
