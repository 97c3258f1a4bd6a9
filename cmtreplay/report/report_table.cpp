#include <algorithm>
#include <cmath>
#include <optional>

#include "cmtreplay/report/report.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

using output::Align;
using output::bytes_text;
using output::fixed;
using output::time_text;
using output::with_commas;

constexpr const char* nothing = "-";

double wall(const Result& result) { return summarise(samples(result, &TimedSample::wall_ns)).median; }

/// Of times: marked where one median lies within the other's spread.
std::string time_ratio(const Summary& time, const Summary& reference) {
  if (reference.median <= 0) return nothing;
  const auto within = [](const Summary& a, const Summary& b) { return b.min <= a.median && a.median <= b.max; };
  const bool same = within(time, reference) || within(reference, time);
  return (same ? "~" : "") + fixed(time.median / reference.median, 2);
}

std::string ratio(double value, double reference) { return reference > 0 ? fixed(value / reference, 2) : nothing; }

std::string number(double value) { return std::isnan(value) ? nothing : fixed(value, 2); }

double peak(const Result& result) { return result.memory ? static_cast<double>(result.memory->peak_bytes()) : 0; }

std::vector<std::string> row(const Result& result, const std::string& name, const Result& first,
                             const TraceFacts& facts) {
  std::vector<std::string> cells{name};
  if (result.timed.empty()) {
    cells.insert(cells.end(), 5, nothing);
  } else {
    const Summary time = summarise(samples(result, &TimedSample::wall_ns));
    const Summary cpu = summarise(samples(result, &TimedSample::cpu_ns));
    const double calls = static_cast<double>(std::max<std::uint64_t>(facts.calls, 1));
    cells.push_back(time_text(time.median));
    cells.push_back(time_text(time.min) + " - " + time_text(time.max));
    const Summary reference = summarise(samples(first, &TimedSample::wall_ns));
    cells.push_back(&result == &first ? ratio(time.median, time.median) : time_ratio(time, reference));
    cells.push_back(time_text(cpu.median));
    cells.push_back(fixed(time.median / calls, 1));
  }
  cells.push_back(result.memory ? bytes_text(result.memory->peak_bytes()) : nothing);
  cells.push_back(result.memory ? ratio(peak(result), peak(first)) : nothing);
  cells.push_back(result.memory ? number(fragmentation(*result.memory, facts)) : nothing);
  const Summary faults = summarise(samples(result, &TimedSample::minor_faults));
  cells.push_back(result.timed.empty() ? nothing : with_commas(static_cast<std::uint64_t>(faults.median)));
  return cells;
}

/// Fastest first; whoever died, or was not run, last.
std::vector<const Result*> in_order(const std::vector<Result>& results) {
  std::vector<const Result*> order;
  for (const Result& result : results) order.push_back(&result);
  std::stable_sort(order.begin(), order.end(), [](const Result* a, const Result* b) {
    const bool a_last = a->death || a->timed.empty();
    const bool b_last = b->death || b->timed.empty();
    return a_last != b_last ? b_last : wall(*a) < wall(*b);
  });
  return order;
}

}  // namespace

std::string table_text(const Report& report) {
  const TraceFacts& facts = report.trace.facts();
  std::string text = report.file + ": " + with_commas(facts.events) + " events, " + with_commas(facts.calls) +
                     " calls replayed, at most " + bytes_text(facts.peak_live.bytes) + " live in " +
                     with_commas(facts.peak_live.blocks) + " blocks\n";
  output::Table table({{"allocator"},
                       {"time", Align::right},
                       {"spread", Align::right},
                       {"ratio", Align::right},
                       {"CPU", Align::right},
                       {"ns/call", Align::right},
                       {"peak resident", Align::right},
                       {"ratio", Align::right},
                       {"fragmentation", Align::right},
                       {"faults", Align::right}});
  const Result& first = report.results.front();
  for (const Result* result : in_order(report.results)) {
    const std::string died = result->death ? " (died)" : "";
    table.add(row(*result, result->allocator.name + died, first, facts));
  }
  table.add(row(report.baseline, "(null)", first, facts));
  return text + table.text();
}

}  // namespace cmt::replay
