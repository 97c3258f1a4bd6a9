// Names the functions that made the blocks at the top of heaps, and writes the table of these blocks.
#include "overhead/heap_tops.h"

#include <algorithm>
#include <vector>

#include "analysis/stacks/function_names/short_name.h"
#include "analysis/stacks/labels.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "libcmt/text/utf8.h"
#include "overhead/forms.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::overhead {
namespace {

using namespace analysis;
using output::bytes_text;
using output::with_commas;

constexpr std::size_t site_columns = 60;

/// Returns the functions that called, the innermost first, from the one that is charged on.
std::vector<std::string> functions_of(StackId stack, const StackTable& stacks, Labels& labels) {
  std::vector<std::string> functions;
  std::string outermost;
  for (StackId at = stack; at != 0; at = stacks.node(at).parent) {
    for (const Label& label : labels.of_frame(stacks.node(at).frame)) {
      outermost = labels.text(label.text);
      if (functions.empty() && label.is_allocation) continue;
      if (functions.size() == TopBlock::functions_max) return functions;
      functions.push_back(outermost);
    }
  }
  if (functions.empty() && !outermost.empty()) functions.push_back(outermost);
  return functions;
}

void name_functions(const std::vector<TopBlock*>& blocks, const Reader& reader, const trace::Options& options) {
  const StackTable& stacks = reader.stacks();
  std::vector<FrameId> frames;
  for (const TopBlock* const block : blocks) {
    for (StackId at = block->stack; at != 0; at = stacks.node(at).parent) frames.push_back(stacks.node(at).frame);
  }
  if (frames.empty()) return;
  std::sort(frames.begin(), frames.end());
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  const ShownStacks shown = show_stacks(named_stacks(stacks, frames, reader.header(), {.tool = options.tool}),
                                        stacks.nodes(), NativeFrames::fold, Key::function);
  Labels labels(shown.stacks, Key::function, shown.charges({}));
  for (TopBlock* const block : blocks) block->functions = functions_of(shown.of(block->stack), shown.stacks, labels);
}

/// "malloc in parse, called by main".
std::string site_text(const TopBlock& top) {
  std::string text(name(top.block.kind));
  if (!top.functions.empty()) text += " in " + short_name(top.functions[0]);
  if (top.functions.size() > 1) text += ", called by " + short_name(top.functions[1]);
  return output::shortened(text::to_line(text), site_columns);
}

std::string made_text(const TopBlock& top) {
  if (top.event == unknown) return "not known";
  return with_commas(top.event) +
         (top.time_ns == unknown ? "" : ", " + output::time_text(static_cast<double>(top.time_ns)));
}

}  // namespace

void name_blocks(Summary& summary, const trace::Options& options) {
  const std::vector<TopBlock*> blocks = summary.blocks_to_name();
  if (blocks.empty() || !command::can_be_read_again(options.path)) return;
  name_functions(blocks, find_origins(blocks, options.path, options.jobs), options);
  summary.mmap_threshold.name_sites();
}

std::string heap_tops_text(const HeapTops& tops) {
  if (!tops.unknown_because.empty()) return "\nblocks at the top of heaps: not known: " + tops.unknown_because + "\n";
  if (tops.heaps.empty())
    return "\nno small block at the top of a heap keeps 128 KiB or more at any sample (gaps below 64 KiB do not "
           "count)\n";
  output::Table table(
      {"heap", "live", "could give back", "without", "block", "size", "allocated since", "made at event", "call"},
      {0, 4, 8});
  for (const HeapTop& heap : tops.heaps) {
    for (const TopBlock& top : heap.highest) {
      const bool is_first = &top == &heap.highest.front();
      const std::string heap_name = heap.is_main ? "main" : output::hex(heap.address);
      const auto of_heap = [&](const std::string& text) { return is_first ? text : std::string(); };
      table.add({of_heap(heap_name), of_heap(bytes_text(heap.live_bytes)),
                 of_heap(bytes_text(heap.gives_back_bytes_max)), of_heap(output::counted(heap.top_blocks, "block")),
                 block_text(top.block), with_commas(top.block.size), bytes_text(top.age_bytes), made_text(top),
                 site_text(top)});
    }
  }
  return "\nblocks at the top of glibc's heaps at event " + with_commas(tops.event) +
         "; free() gives back only the end of a heap.\n\"could give back\" is an upper bound: if these blocks ended, "
         "or if the program called malloc_trim()\n\n" +
         table.text();
}

std::string threshold_text(const MmapThreshold& threshold) {
  const std::string title = "\nglibc's threshold for mappings (M_MMAP_THRESHOLD): ";
  if (!threshold.unknown_because.empty()) return title + "not known: " + threshold.unknown_because + "\n";
  const std::string set = threshold.is_set ? "the program sets it with mallopt" : "";
  if (!threshold.first) return title + (threshold.is_set ? set : "never raised from 128 KiB") + "\n";
  std::string text = title + "raised from 128 KiB to " + bytes_text(threshold.bytes) + " by " +
                     output::counted(threshold.raises, "free") + (threshold.is_set ? "; later " + set : "") +
                     "\n  first: " + raise_text(*threshold.first) + "\n";
  if (threshold.raises > 1) text += "  last: " + raise_text(*threshold.last) + "\n";
  if (threshold.heap_blocks == 0) return text + "  no later block of 128 KiB or more came from a heap\n";
  return text + "  since then heaps, which keep freed memory, had " + output::counted(threshold.heap_blocks, "block") +
         " of 128 KiB or more, at most " + bytes_text(threshold.heap_bytes_peak) +
         " live;\n  MALLOC_MMAP_THRESHOLD_=131072 gives each of them a mapping of its own\n";
}

}  // namespace cmt::overhead
