// Writes overhead's summary as text and as CSV.

#include <algorithm>
#include <cassert>
#include <functional>
#include <span>
#include <vector>

#include "overhead/forms.h"
#include "overhead/heap_tops.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::overhead {
namespace {

using namespace analysis;
using output::bytes_text;
using output::counted;
using output::percent_text;
using output::range_text;
using output::with_commas;

std::string head_text(const Summary& summary) {
  const MemoryUse& peak = summary.peak;
  std::string text = command::input_name(summary.name) + ": " + counted(summary.events, "event");
  if (summary.truncated) text += ", breaks off";
  if (summary.defects != 0) text += ", " + counted(summary.defects, "defect");
  if (summary.unknown_ends != 0) {
    text += "\n  not counted: unknown blocks, made before the trace began or not recorded; frees of them: " +
            with_commas(summary.unknown_ends);
  }
  text += "\n  peak live: " + counted(peak.live_bytes, "byte") + " in " + counted(peak.live_blocks, "block") + " on " +
          counted(peak.pages, "page") + ", at event " + with_commas(peak.event);
  if (peak.untouched_pages) {
    const auto bytes = [&](std::uint64_t pages) { return bytes_text(pages * summary.page_size); };
    text += "\n  of these pages not known to be touched by then: " + with_commas(*peak.untouched_pages) + ", " +
            bytes(*peak.untouched_pages) + "; known: " + bytes(*peak.touched_pages());
    if (peak.unknown_pages.value_or(0) != 0)
      text += "; not asked about, or in memory before: " + bytes(*peak.unknown_pages);
  }
  text += "\n  most pages: " + with_commas(summary.pages_peak) + " of " + bytes_text(summary.page_size) + "\n";
  const std::uint64_t used_bytes = peak.pages * summary.page_size;
  const std::uint64_t internal = peak.slop_bytes.value_or(peak.small_gap_bytes);
  const std::uint64_t unused = used_bytes > peak.live_bytes ? used_bytes - peak.live_bytes : 0;
  text += "  unused on the pages at the peak: " + percent_text(unused, used_bytes) + "; internal, " +
          (peak.slop_bytes ? "by usable size: " : "as gaps of 31 bytes or less: ") +
          percent_text(internal, used_bytes) +
          "; external: " + percent_text(unused > internal ? unused - internal : 0, used_bytes) + "\n";
  return text;
}

output::Columns<Sample> sample_columns(const Summary& summary) {
  const std::uint64_t page_size = summary.page_size;
  output::Columns<Sample> columns;
  columns.leave_out_first({"held max", "of pages", "by old", "unknown"});
  columns.add("event", "event", with_commas);
  columns.add("live", "live_bytes", bytes_text);
  columns.add("pages", "pages", with_commas);
  columns.add("held max", "held_pages_max", with_commas);
  columns.add_computed(
      "use", [page_size](const Sample& sample) { return percent_text(sample.live_bytes, sample.pages * page_size); });
  columns.add("by old", "old_pages", with_commas);
  columns.add("pinned", "pinned_pages", with_commas);
  columns.add_computed("of pages", [](const Sample& sample) {
    assert(sample.old);
    return percent_text(sample.old->pinned_pages, sample.pages);
  });
  columns.add("separable", "separable_pages",
              std::function([page_size](std::uint64_t pages) { return bytes_text(pages * page_size); }));
  if (summary.peak.untouched_pages) {
    columns.add("untouched", "untouched_pages", with_commas, "0");
    columns.add("unknown", "unknown_pages", with_commas, "0");
  }
  return columns;
}

/// A row for each sample at which the old blocks were counted.
std::string samples_text(const Summary& summary) {
  const output::Columns<Sample> columns = sample_columns(summary);
  output::Table table = columns.table();
  for (const Sample& sample : summary.samples) {
    if (sample.old) table.add(columns.cells(sample));
  }
  return table.text(terminal::table_width());
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
    oldest.add({block_text(pin.block), with_commas(pin.block.size), bytes_text(pin.age_bytes)});
  }
  return "at event " + with_commas(pins.event) + " small old blocks pin " + with_commas(pins.pinned_pages) + " of " +
         counted(pins.pages, "page") + "; by size of the block, and the oldest\n\n" + sizes.text() + "\n" +
         oldest.text();
}

/// Returns a table of groups, the one with the most unused bytes first, with one row for all after the first ten.
template <class Label>
std::string holdings_text(const std::string& title, std::span<const Holding> holdings, Label label,
                          const Holders& holders, std::uint64_t page_size) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < holdings.size(); ++i) {
    if (holdings[i].blocks != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return holdings[a].unused_bytes > holdings[b].unused_bytes; });
  output::Table table({title, "blocks", "live", "pages", "of all", "unused", "free without"});
  const auto add_row = [&](const std::string& name, const Holding& holding, const std::string& sole) {
    table.add({name, with_commas(holding.blocks), bytes_text(holding.live_bytes),
               output::fixed(static_cast<double>(holding.page_bytes) / static_cast<double>(page_size), 1),
               percent_text(holding.page_bytes, holders.pages * page_size), bytes_text(holding.unused_bytes), sole});
  };
  const std::size_t shown = std::min<std::size_t>(order.size(), 10);
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const Holding& holding = holdings[order[rank]];
    add_row(label(order[rank]), holding, bytes_text(holding.sole_bytes));
  }
  Holding others;
  for (std::size_t rank = shown; rank < order.size(); ++rank) {
    const Holding& holding = holdings[order[rank]];
    others.blocks += holding.blocks;
    others.live_bytes += holding.live_bytes;
    others.page_bytes += holding.page_bytes;
    others.unused_bytes += holding.unused_bytes;
  }
  if (others.blocks != 0) add_row("others", others, "-");
  return "\n" + table.text();
}

std::string holders_text(const Summary& summary) {
  const Holders& holders = summary.holders;
  if (holders.pages == 0) return {};
  const auto size = [](std::size_t i) { return range_text(SizeClasses::low(i), SizeClasses::high(i)); };
  const auto age = [](std::size_t i) { return bytes_text(Doublings::low(i)) + " or more"; };
  const auto kind = [](std::size_t i) { return std::string(KindNames::low(i)); };
  return "\nwho holds the " + output::counted(holders.pages, "page") + " at event " + with_commas(holders.event) +
         ", the sample with the most unused bytes on pages;\na page is shared evenly among its blocks; free without: "
         "pages that no other group is on\n" +
         holdings_text("size", holders.by_size, size, holders, summary.page_size) +
         holdings_text("allocated since", holders.by_age, age, holders, summary.page_size) +
         holdings_text("made by", holders.by_kind, kind, holders, summary.page_size);
}

}  // namespace

std::string block_text(std::uint64_t address, Tag tag) {
  return output::hex(address) + "<" + std::to_string(tag) + ">";
}

std::string to_text(const Summary& summary) {
  return head_text(summary) +
         "\npages over time; held max: without a live block, the most that the allocator can still hold;\n"
         "by old: old blocks are on them; separable: could be given back if old blocks lay apart\n\n" +
         samples_text(summary) + "\ngaps between neighbours at the peak, in bytes\n\n" + gaps_text(summary) + "\n" +
         pins_text(summary.pins) + holders_text(summary) + heap_tops_text(summary.heap_tops) +
         threshold_text(summary.mmap_threshold);
}

std::string to_csv(const Summary& summary) {
  std::string text = output::csv_titles<Sample>();
  for (const Sample& sample : summary.samples) text += output::csv_row(sample);
  return text;
}

}  // namespace cmt::overhead
