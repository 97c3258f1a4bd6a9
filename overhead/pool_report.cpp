// The summary of a pool as text and as CSV.
#include <span>

#include "overhead/pool_use.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::overhead {
namespace {

using namespace analysis;
using output::bytes_text;
using output::counted;
using output::percent_text;
using output::with_commas;

std::string pool_head_text(const PoolSummary& summary) {
  std::string text =
      command::input_name(summary.name) + ", pool " + summary.pool + ": " + counted(summary.events, "event");
  if (summary.truncated) text += ", breaks off";
  if (summary.defects != 0) text += ", " + counted(summary.defects, "defect");
  if (summary.unknown_ends != 0) {
    text += "\n  not counted: unknown blocks, made before the trace began or not recorded; frees of them: " +
            with_commas(summary.unknown_ends);
  }
  const PoolMoment& peak = summary.peak;
  text += "\n  peak live: " + counted(peak.live_bytes, "byte") + " in " + counted(peak.live_blocks, "block") +
          ", at event " + with_commas(peak.event);
  if (peak.arena_bytes)
    text +=
        ", " + percent_text(peak.live_bytes, *peak.arena_bytes) + " of " + bytes_text(*peak.arena_bytes) + " of arenas";
  text += summary.arena_bytes_peak
              ? "\n  most bytes of arenas: " + with_commas(*summary.arena_bytes_peak)
              : "\n  not all of the pool's arenas were recorded: how much of them is unused is not known";
  return text + "\n  no pages and gaps: a trace has no addresses of the blocks of pools\n";
}

std::string pool_samples_text(const PoolSummary& summary) {
  output::Columns<PoolSample> columns;
  columns.add("event", "event", with_commas);
  columns.add("live", "live_bytes", bytes_text);
  columns.add("blocks", "live_blocks", with_commas);
  if (summary.arena_bytes_peak) {
    columns.add("arenas", "arena_bytes", bytes_text);
    columns.add("unused", "unused_bytes", bytes_text);
    columns.add_computed("use", [](const PoolSample& sample) {
      return sample.arena_bytes ? percent_text(sample.live_bytes, *sample.arena_bytes) : "-";
    });
  }
  columns.add("old blocks", "old_blocks", with_commas);
  columns.add("old bytes", "old_bytes", bytes_text);
  output::Table table = columns.table();
  for (const PoolSample& sample : summary.samples) {
    if (sample.old) table.add(columns.cells(sample));
  }
  return table.text(terminal::table_width());
}

template <class Label>
std::string amounts_text(const std::string& title, std::span<const Amount> amounts, Label label, std::uint64_t all) {
  output::Table table({title, "blocks", "live", "of all"});
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i].blocks == 0) continue;
    table.add(
        {label(i), with_commas(amounts[i].blocks), bytes_text(amounts[i].bytes), percent_text(amounts[i].bytes, all)});
  }
  return "\n" + table.text();
}

}  // namespace

std::string to_text(const PoolSummary& summary) {
  std::string text = pool_head_text(summary) +
                     "\nblocks over time; unused: bytes of arenas less live bytes; old: more bytes were allocated "
                     "since than are live\n\n" +
                     pool_samples_text(summary);
  const PoolHolders& holders = summary.holders;
  if (holders.moment.live_blocks == 0) return text;
  text += "\nlive blocks at event " + with_commas(holders.moment.event) + ", the sample with the most " +
          (holders.moment.arena_bytes ? "unused bytes in arenas\n" : "live bytes\n");
  const std::uint64_t all = holders.moment.live_bytes;
  return text +
         amounts_text(
             "size", holders.by_size,
             [](std::size_t i) { return output::range_text(SizeClasses::low(i), SizeClasses::high(i)); }, all) +
         amounts_text(
             "allocated since", holders.by_age,
             [](std::size_t i) { return bytes_text(Doublings::low(i)) + " or more"; }, all);
}

std::string to_csv(const PoolSummary& summary) {
  std::string text = output::csv_titles<PoolSample>();
  for (const PoolSample& sample : summary.samples) text += output::csv_row(sample);
  return text;
}

}  // namespace cmt::overhead
