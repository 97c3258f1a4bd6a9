#include <array>
#include <utility>
#include <vector>

#include "lifetimes/report.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::lifetimes {
namespace {

using output::Align;
using output::with_commas;

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : output::fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string size_text(std::size_t size_class) {
  const std::uint64_t low = SizeClasses::low(size_class);
  const std::uint64_t high = SizeClasses::high(size_class);
  return low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high);
}

std::string age_text(const std::optional<std::uint64_t>& age) { return age ? with_commas(*age) : "-"; }

std::string_view unit_text(heap::Clock::Unit clock) {
  return clock == heap::Clock::Unit::time ? "ns" : heap::Clock::name(clock);
}

std::string amount_text(const Amount& amount) {
  return with_commas(amount.blocks) + " blocks, " + with_commas(amount.bytes) + " bytes";
}

std::string input_text(const Input& input) {
  std::string text = input.name + ": " + with_commas(input.events) + " events";
  if (input.truncated) text += ", breaks off";
  if (input.defects != 0) text += ", " + with_commas(input.defects) + " defects";
  text += "\n  peak live: " + amount_text(input.peak.live) + ", at event " + with_commas(input.peak.event);
  if (input.peak.time_ns != unknown) text += " (" + output::time_text(static_cast<double>(input.peak.time_ns)) + ")";
  return text + "\n";
}

std::string bounds_text(const Summary& summary) {
  if (summary.inputs.size() < 2) return {};
  Amount sum;
  std::uint64_t greatest = 0;
  for (const Input& input : summary.inputs) {
    sum.add(input.peak.live);
    if (input.peak.live.bytes > greatest) greatest = input.peak.live.bytes;
  }
  return "peak live of all: from " + with_commas(greatest) + " to " + with_commas(sum.bytes) + " bytes\n";
}

std::string totals_text(const Summary& summary) {
  const SizeSummary all = summary.total();
  std::uint64_t chains = 0;
  for (const std::uint64_t count : summary.chains) chains += count;
  output::Table table({{"blocks"}, {"number", Align::right}, {"share", Align::right}});
  const auto row = [&](const std::string& what, std::uint64_t count, std::uint64_t of) {
    table.add({what, with_commas(count), share_text(count, of)});
  };
  row("allocated", all.allocated.blocks, all.allocated.blocks);
  row("alive at the end", all.leaked.blocks, all.allocated.blocks);
  row("ended", all.ended, all.allocated.blocks);
  const std::string bound = with_commas(short_lived_max(summary.clock)) + " " + std::string(unit_text(summary.clock));
  row("  after " + bound + " or less", all.short_lived, all.ended);
  row("  temporary: freed by the thread's next event", all.temporary, all.ended);
  row("  by another thread", all.other_thread, all.ended);
  row("reallocation chains, the longest of " + with_commas(summary.chain_max), chains, all.allocated.blocks);
  row("ended, from before the begin", summary.unknown_ends, 0);
  row("refused", summary.failed, 0);
  return table.text();
}

/// Of which sizes the peaks were, together.
std::array<Amount, SizeClasses::count> peak_sizes(const Summary& summary) {
  std::array<Amount, SizeClasses::count> sums{};
  for (const Input& input : summary.inputs) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(input.peak.sizes[i]);
  }
  return sums;
}

std::string sizes_text(const Summary& summary) {
  output::Table table({{"size", Align::right},
                       {"allocated", Align::right},
                       {"bytes", Align::right},
                       {"short-lived", Align::right},
                       {"temporary", Align::right},
                       {"p50", Align::right},
                       {"p90", Align::right},
                       {"p99", Align::right},
                       {"longest", Align::right},
                       {"at peak", Align::right},
                       {"bytes", Align::right},
                       {"at end", Align::right},
                       {"bytes", Align::right}});
  const auto peaks = peak_sizes(summary);
  const auto add_row = [&](std::string name, const SizeSummary& size, auto quantile, const Amount& peak) {
    const std::string longest = size.ended == 0 ? "-" : with_commas(size.lifetime_max);
    table.add({std::move(name), with_commas(size.allocated.blocks), output::bytes_text(size.allocated.bytes),
               share_text(size.short_lived, size.ended), share_text(size.temporary, size.ended),
               age_text(quantile(0.5)), age_text(quantile(0.9)), age_text(quantile(0.99)), longest,
               with_commas(peak.blocks), output::bytes_text(peak.bytes), with_commas(size.leaked.blocks),
               output::bytes_text(size.leaked.bytes)});
  };
  Amount peak_all;
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    peak_all.add(peaks[i]);
    if (summary.sizes[i].allocated.blocks == 0) continue;
    add_row(
        size_text(i), summary.sizes[i], [&](double share) { return summary.quantile(i, share); }, peaks[i]);
  }
  add_row(
      "all", summary.total(), [&](double share) { return summary.quantile(share); }, peak_all);
  return table.text();
}

}  // namespace

std::string to_text(const Summary& summary) {
  std::string text;
  for (const Input& input : summary.inputs) text += input_text(input);
  text += bounds_text(summary);
  text += "\n" + totals_text(summary);
  text += "\nlifetimes in " + std::string(unit_text(summary.clock)) + ", by bytes asked for\n\n" + sizes_text(summary);
  return text;
}

}  // namespace cmt::lifetimes
