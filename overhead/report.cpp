// The summary as text, JSON and CSV.

#include "overhead/summary.h"
#include "toolkit/annotate/trace_tool.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::overhead {
namespace {

using output::bytes_text;
using output::percent_text;
using output::range_text;
using output::with_commas;

std::string head_text(const Summary& summary) {
  const MemoryUse& peak = summary.peak;
  std::string text = summary.name + ": " + with_commas(summary.events) + " events";
  if (summary.truncated) text += ", breaks off";
  if (summary.defects != 0) text += ", " + with_commas(summary.defects) + " defects";
  text += "\n  peak live: " + with_commas(peak.live_bytes) + " bytes in " + with_commas(peak.live_blocks) +
          " blocks on " + with_commas(peak.pages) + " pages, at event " + with_commas(peak.event);
  text += "\n  most pages: " + with_commas(summary.pages_peak) + " of " + bytes_text(summary.page_size) + "\n";
  const std::uint64_t touched = peak.pages * summary.page_size;
  const std::uint64_t internal = peak.slop_bytes.value_or(peak.small_gap_bytes);
  const std::uint64_t unused = touched > peak.live_bytes ? touched - peak.live_bytes : 0;
  text += "  unused on the pages at the peak: " + percent_text(unused, touched) + "; internal, " +
          (peak.slop_bytes ? "by usable size: " : "as gaps of 31 bytes or less: ") + percent_text(internal, touched) +
          "; external: " + percent_text(unused > internal ? unused - internal : 0, touched) + "\n";
  return text;
}

std::string samples_text(const Summary& summary) {
  output::Table table({"event", "live", "pages", "free", "use", "by old", "pinned", "of pages", "separable"}, {});
  for (const Sample& sample : summary.samples) {
    if (!sample.old) continue;
    const OldBlocks& old = *sample.old;
    table.add({with_commas(sample.event), bytes_text(sample.live_bytes), with_commas(sample.pages),
               with_commas(sample.free_pages), percent_text(sample.live_bytes, sample.pages * summary.page_size),
               with_commas(old.pages), with_commas(old.pinned_pages), percent_text(old.pinned_pages, sample.pages),
               bytes_text(old.separable_pages * summary.page_size)});
  }
  return table.text();
}

std::string gaps_text(const Summary& summary) {
  output::Table table({"gap", "gaps", "bytes"}, {});
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    const Gaps& gaps = summary.gaps[i];
    if (gaps.count != 0)
      table.add(
          {range_text(SizeClasses::low(i), SizeClasses::high(i)), with_commas(gaps.count), bytes_text(gaps.bytes)});
  }
  return table.text();
}

std::string pins_text(const Pins& pins) {
  if (pins.pinned_pages == 0) return "no page is pinned by a small old block at any sample\n";
  output::Table sizes({"size", "pages"}, {});
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    if (pins.pages_by_size[i] != 0)
      sizes.add({range_text(SizeClasses::low(i), SizeClasses::high(i)), with_commas(pins.pages_by_size[i])});
  }
  output::Table oldest({"block", "size", "allocated since"});
  for (const Pin& pin : pins.oldest) {
    oldest.add({annotate::block_text(pin.block), with_commas(pin.block.size), bytes_text(pin.age_bytes)});
  }
  return "at event " + with_commas(pins.event) + " small old blocks pin " + with_commas(pins.pinned_pages) + " of " +
         with_commas(pins.pages) + " pages; by size of the block, and the oldest\n\n" + sizes.text() + "\n" +
         oldest.text();
}

}  // namespace

std::string to_text(const Summary& summary) {
  return head_text(summary) +
         "\npages over time; free: wholly, between touched ones; by old: old blocks are on them;\n" +
         "separable: could be given back if old blocks lay apart\n\n" + samples_text(summary) +
         "\ngaps between neighbours at the peak, in bytes\n\n" + gaps_text(summary) + "\n" + pins_text(summary.pins);
}

std::string to_csv(const Summary& summary) {
  std::string text = output::csv_titles<Sample>();
  for (const Sample& sample : summary.samples) text += output::csv_row(sample);
  return text;
}

}  // namespace cmt::overhead
