// Puts the figures of call sites in order, and judges whether the trace is of the process that was looked at.
#include <algorithm>

#include "cmtwatch/explain/explain_fields.h"

namespace cmt::watch::explain {
namespace {

/// glibc raises the threshold to the size of the chunk, which is the mapping, or a few bytes less.
std::optional<analysis::RaiseRow> raise_of(const BlockSites& sites, const MallocParameters& parameters) {
  if (parameters.are_thresholds_fixed || parameters.mmap_threshold <= analysis::mmap_threshold_first)
    return std::nullopt;
  const auto freed = sites.freed.find(page_end(parameters.mmap_threshold));
  if (freed == sites.freed.end()) return std::nullopt;
  const FreedMapping& block = freed->second;
  analysis::RaiseRow row{sites.names[sites.by_stack[block.stack]], block.size, block.event, {}};
  if (block.time_ns != unknown) row.time_ns = block.time_ns;
  return row;
}

}  // namespace

std::optional<TraceRow> trace_row(const Explanation& explanation) {
  if (explanation.sites == nullptr || !explanation.heap) return std::nullopt;
  const GlibcHeap& heap = *explanation.heap;
  TraceRow row;
  row.file = explanation.sites->path;
  row.live_blocks = explanation.sites->blocks.size();
  row.found_blocks = heap.mapped.traced;
  for (std::size_t site = 0; site < heap.figures.by_site.size(); ++site) {
    const BlockGroup& group = heap.figures.by_site[site];
    row.kept_bytes += group.pinned_bytes;
    if (site == BlockSites::not_in_trace) continue;
    row.found_blocks += group.blocks;
    row.known_kept_bytes += group.pinned_bytes;
  }
  constexpr std::uint64_t matching_share = 10;  // a tenth: chance finds fewer, and less is of little use
  row.matches = row.found_blocks != 0 && row.found_blocks >= row.live_blocks / matching_share;
  if (row.matches && heap.malloc.parameters)
    row.threshold_raised_by = raise_of(*explanation.sites, *heap.malloc.parameters);
  return row;
}

std::vector<SiteRow> sites_of(const Explanation& explanation, std::size_t most) {
  std::vector<SiteRow> rows;
  const auto trace = trace_row(explanation);
  if (!trace || !trace->matches) return rows;
  const std::vector<BlockGroup>& groups = explanation.heap->figures.by_site;
  for (std::size_t site = 0; site < groups.size(); ++site) {
    const BlockGroup& group = groups[site];
    if (group.pinned_bytes != 0)
      rows.push_back({explanation.sites->names[site], group.blocks, group.bytes, group.pinned_bytes});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const SiteRow& a, const SiteRow& b) { return a.kept_bytes > b.kept_bytes; });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

}  // namespace cmt::watch::explain
