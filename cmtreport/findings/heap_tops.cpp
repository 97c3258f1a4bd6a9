// Puts the heap that could give back most into words: what its last blocks keep, and who made the highest one.
#include "cmtreport/findings/heap_tops.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/stacks/function_names/short_name.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {
namespace {

using analysis::HeapTop;
using analysis::HeapTops;
using analysis::TopBlock;
using output::bytes_text;
using output::counted;
using output::with_commas;

constexpr std::uint64_t least_kept_bytes = 1 << 20;
constexpr double least_kept_share = 0.1;  // of the most pages that blocks were on
constexpr double heap_top_weight = 0.3;   // as that of other memory that the allocator keeps
constexpr double threshold_weight = 0.1;  // the memory may be needed
constexpr std::size_t function_columns = 48;

std::string function_of(std::string_view function) {
  return output::shortened(text::to_line(analysis::short_name(function)), function_columns);
}

/// "make_last (called by main)", or "malloc" if call stacks were not recorded.
std::string maker_of(const TopBlock& top) {
  if (top.functions.empty()) return std::string(name(top.block.kind));
  return function_of(top.functions[0]) +
         (top.functions.size() > 1 ? " (called by " + function_of(top.functions[1]) + ")" : "");
}

std::string when_text(std::uint64_t event, std::uint64_t time_ns) {
  return time_ns == unknown ? "event " + with_commas(event) : output::time_text(static_cast<double>(time_ns));
}

std::string finding_text(const HeapTops& tops) {
  const HeapTop& heap = tops.heaps.front();
  const TopBlock& highest = heap.highest.front();
  const bool is_one = heap.top_blocks == 1;
  std::string text = "at " + when_text(tops.event, tops.time_ns) + " up to " + bytes_text(heap.gives_back_bytes_max) +
                     " of " + (heap.is_main ? "the main heap" : "the heap at " + output::hex(heap.address)) +
                     " are free below its last " + (is_one ? "block" : counted(heap.top_blocks, "block")) +
                     ", and free() gives back only the end of a heap. " + maker_of(highest) + " made the " +
                     (is_one ? "block of " : "highest, of ") + bytes_text(highest.block.size) +
                     (highest.event == unknown ? "" : ", at " + when_text(highest.event, highest.time_ns));
  if (tops.heaps.size() > 1)
    text += "; " + counted(tops.heaps.size() - 1, "other heap") +
            (tops.heaps.size() == 2 ? " also keeps" : " also keep") + " free pages: up to " +
            bytes_text(tops.gives_back_bytes_max) + " in all heaps";
  return text;
}

double share_of_pages(std::uint64_t bytes, const analysis::Summary& summary) {
  return static_cast<double>(bytes) /
         static_cast<double>(std::max<std::uint64_t>(summary.pages_peak * summary.page_size, 1));
}

/// Marks a finding as that of a node's function.
void add_node(Finding& finding, CallId node, const CallTree& tree, const std::vector<NodeNumber>& node_of) {
  if (node == CallTree::left_out) return;
  finding.function = tree.at(tree.at(node).function).name;
  finding.node = node_of[index_of(node)];
}

}  // namespace

std::optional<Finding> heap_top_finding(const HeldPages& pages, const CallTree& tree,
                                        const std::vector<NodeNumber>& node_of) {
  if (pages.pass == nullptr || pages.pass->summary.heap_tops.heaps.empty()) return std::nullopt;
  const analysis::Summary& summary = pages.pass->summary;
  const HeapTops& tops = summary.heap_tops;
  const HeapTop& heap = tops.heaps.front();
  const double share = share_of_pages(tops.gives_back_bytes_max, summary);
  if (tops.gives_back_bytes_max < least_kept_bytes || share < least_kept_share) return std::nullopt;
  Finding finding{.kind = "heap_top",
                  .figure = bytes_text(tops.gives_back_bytes_max),
                  .headline = "free below the last blocks of heaps, which " + maker_of(heap.highest.front()) + " made",
                  .text = finding_text(tops),
                  .function = {},
                  .figures = {{"gives_back_bytes_max", heap.gives_back_bytes_max},
                              {"all_gives_back_bytes_max", tops.gives_back_bytes_max},
                              {"event", tops.event},
                              {"top_blocks", heap.top_blocks},
                              {"top_bytes", heap.top_bytes},
                              {"highest_tag", heap.highest.front().block.tag}},
                  .part = "pages",
                  .span = {},
                  .node = {},
                  .weight = std::min(share, 1.0) * heap_top_weight};
  add_node(finding, pages.heap_top_node, tree, node_of);
  return finding;
}

std::optional<Finding> threshold_finding(const HeldPages& pages, const CallTree& tree,
                                         const std::vector<NodeNumber>& node_of) {
  if (pages.pass == nullptr || !pages.pass->summary.mmap_threshold.first) return std::nullopt;
  const analysis::MmapThreshold& threshold = pages.pass->summary.mmap_threshold;
  const double share = share_of_pages(threshold.heap_bytes_peak, pages.pass->summary);
  if (threshold.heap_bytes_peak < least_kept_bytes || share < least_kept_share) return std::nullopt;
  Finding finding{.kind = "mmap_threshold",
                  .figure = bytes_text(threshold.heap_bytes_peak),
                  .headline = "in large blocks from glibc's heaps, since a free raised its threshold for mappings",
                  .text = "glibc's threshold for mappings rose from 128 KiB to " + bytes_text(threshold.bytes) +
                          ", first by " + raise_text(*threshold.first) + ". Since then " +
                          counted(threshold.heap_blocks, "block") + " of 128 KiB or more, at most " +
                          bytes_text(threshold.heap_bytes_peak) +
                          " at once, came from its heaps, which keep freed memory. MALLOC_MMAP_THRESHOLD_=131072 gives "
                          "each of them a mapping of its own",
                  .function = {},
                  .figures = {{"threshold_bytes", threshold.bytes},
                              {"raises", threshold.raises},
                              {"first_bytes", threshold.first->bytes},
                              {"first_event", threshold.first->event},
                              {"heap_blocks", threshold.heap_blocks},
                              {"heap_bytes_peak", threshold.heap_bytes_peak}},
                  .part = "pages",
                  .span = {},
                  .node = {},
                  .weight = std::min(share, 1.0) * threshold_weight};
  add_node(finding, pages.threshold_node, tree, node_of);
  return finding;
}

}  // namespace cmt::report
