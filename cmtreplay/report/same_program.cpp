// Joins pairs by the names of their allocators, and shows ranges.
#include "cmtreplay/report/same_program.h"

#include <algorithm>
#include <utility>

#include "toolkit/command/command_line.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::replay {
namespace {

/// The same comparison with the other allocator first.
Comparison turned(const Comparison& pair) {
  return {.less = pair.more,
          .more = pair.less,
          .ratio = 1 / pair.ratio,
          .low = 1 / pair.high,
          .high = 1 / pair.low,
          .is_known = pair.is_known,
          .is_certain = pair.is_certain};
}

/// `pairs`: the same two allocators in the same order.
Comparison joined(const std::vector<Comparison>& pairs) {
  Comparison all = pairs.front();
  std::vector<double> ratios;
  for (const Comparison& pair : pairs) {
    ratios.push_back(pair.ratio);
    all.low = std::min(all.low, pair.low);
    all.high = std::max(all.high, pair.high);
    all.is_known = all.is_known && pair.is_known;
  }
  all.ratio = median_of(ratios);
  all.is_certain = all.is_known && (all.high < 1 || all.low > 1);
  return all.ratio > 1 ? turned(all) : all;
}

std::vector<std::vector<Comparison>> comparisons_of(const SameProgram& report,
                                                    std::vector<Comparison> ReportFields::*pairs) {
  std::vector<std::vector<Comparison>> all;
  for (const ReportFields& recording : report.recordings) all.push_back(recording.*pairs);
  return all;
}

/// "1.2 s to 1.4 s", or one of them if both are the same text. "-" for an allocator without the figure.
template <class Text>
std::string spread_text(std::vector<double> figures, std::size_t wanted, const Text& text) {
  if (figures.size() < wanted) return "-";
  const auto [least, most] = std::minmax_element(figures.begin(), figures.end());
  const std::string from = text(*least), to = text(*most);
  return from == to ? from : from + " to " + to;
}

std::string size_text(double bytes) { return output::bytes_text(static_cast<std::uint64_t>(bytes)); }

/// The allocator's name, marked as in the table of one recording if it died or refused calls in any of them.
std::string marked_name(const SameProgram& report, std::size_t index) {
  const std::string name = report.recordings.front().allocators[index].result.allocator.in_line();
  std::uint64_t least = unknown, most = 0;
  for (const ReportFields& recording : report.recordings) {
    const AllocatorResult& result = recording.allocators[index].result;
    if (result.death) return name + " (died)";
    least = std::min(least, refused_calls(result));
    most = std::max(most, refused_calls(result));
  }
  if (most == 0) return name;
  return name + " (refused " + (least == most ? "" : output::with_commas(least) + " to ") +
         output::counted(most, "call") + ")";
}

/// The row of the allocator with this index. Recordings in which it died have none of its figures.
std::vector<std::string> row_of(const SameProgram& report, std::size_t index) {
  std::vector<double> times, peaks, ends;
  for (const ReportFields& recording : report.recordings) {
    const AllocatorResult& result = recording.allocators[index].result;
    if (!result.timed.empty()) times.push_back(spread_of(result, &TimedSample::wall_ns).median);
    if (!result.memory) continue;
    peaks.push_back(static_cast<double>(result.memory->peak_bytes()));
    ends.push_back(static_cast<double>(result.memory->end_bytes()));
  }
  const std::size_t wanted = report.recordings.size();
  return {marked_name(report, index), spread_text(times, wanted, [](double ns) { return output::time_text(ns); }),
          spread_text(peaks, wanted, size_text), spread_text(ends, wanted, size_text)};
}

std::string heading_text(const SameProgram& report) {
  std::vector<double> events, peaks;
  std::string names;
  for (const ReportFields& recording : report.recordings) {
    events.push_back(static_cast<double>(recording.trace.facts.events));
    peaks.push_back(static_cast<double>(recording.trace.facts.peak_live.bytes));
    names += (names.empty() ? "" : ", ") + command::input_name(recording.trace.file);
  }
  const std::size_t count = report.recordings.size();
  const auto number = [](double value) { return output::with_commas(static_cast<std::uint64_t>(value)); };
  return std::to_string(count) + " recordings of one program: " + names + "\n" + spread_text(events, count, number) +
         " events, at most " + spread_text(peaks, count, size_text) + " live\n";
}

}  // namespace

std::vector<Comparison> join_comparisons(const std::vector<std::vector<Comparison>>& recordings) {
  std::vector<Comparison> all;
  if (recordings.empty()) return all;
  for (const Comparison& first : recordings.front()) {
    std::vector<Comparison> pairs;
    for (const std::vector<Comparison>& recording : recordings) {
      for (const Comparison& pair : recording) {
        if (pair.less == first.less && pair.more == first.more) pairs.push_back(pair);
        if (pair.less == first.more && pair.more == first.less) pairs.push_back(turned(pair));
      }
    }
    if (pairs.size() == recordings.size()) all.push_back(joined(pairs));
  }
  // verdict_lines() expects the pairs of one lower allocator next to each other.
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.less < b.less; });
  return all;
}

std::vector<Comparison> SameProgram::times() const {
  return join_comparisons(comparisons_of(*this, &ReportFields::times));
}

std::vector<Comparison> SameProgram::peaks() const {
  return join_comparisons(comparisons_of(*this, &ReportFields::peaks));
}

std::vector<std::string> SameProgram::verdict() const {
  return verdict_lines(times(), peaks(), std::to_string(recordings.size()) + " recordings");
}

std::string table_text(const SameProgram& report) {
  output::Table table({"allocator", "time", "peak", "at end"});
  for (std::size_t i = 0; i < report.recordings.front().allocators.size(); ++i) table.add(row_of(report, i));
  std::string text = heading_text(report) + table.text();
  const std::vector<std::string> verdict = report.verdict();
  for (const std::string& line : verdict) text += (&line == &verdict.front() ? "\n" : "") + line + "\n";
  return text;
}

void append_csv(std::string& csv, const std::string& file, std::string_view recording) {
  const bool is_first = csv.empty();
  for (bool is_title = true; !recording.empty(); is_title = false) {
    const std::size_t length = recording.find('\n') + 1;
    if (!is_title || is_first)
      csv += (is_title ? "trace" : output::csv_cell(std::string_view(file))) + "," +
             std::string(recording.substr(0, length));
    recording.remove_prefix(length);
  }
}

std::string json_text(const SameProgram& report) { return output::json_text(report); }

}  // namespace cmt::replay
