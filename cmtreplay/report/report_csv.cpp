#include <cmath>

#include "cmtreplay/report/report.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

/// In quotes where a comma, a quote or a line's end would break the line up.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string whole(double number) { return output::fixed(number, 0); }

std::string row(const Result& result, const Report& report) {
  const TraceFacts& facts = report.trace.facts();
  std::string line = cell(result.allocator.name) + "," + cell(result.allocator.library) + ",";
  line += result.death ? std::to_string(result.death->event) : "";
  line += "," + std::to_string(result.timed.size());
  if (result.timed.empty()) {
    line += ",,,,,,";
  } else {
    const Summary wall = summarise(samples(result, &TimedSample::wall_ns));
    line += "," + whole(wall.median) + "," + whole(wall.min) + "," + whole(wall.max) + "," +
            whole(summarise(samples(result, &TimedSample::cpu_ns)).median) + "," +
            output::fixed(facts.calls == 0 ? 0 : wall.median / static_cast<double>(facts.calls), 2) + "," +
            whole(summarise(samples(result, &TimedSample::minor_faults)).median);
  }
  line += "," + (result.memory ? std::to_string(result.memory->peak_bytes()) : "");
  const double now = result.memory ? fragmentation(*result.memory, facts) : std::nan("");
  line += "," + (std::isnan(now) ? "" : output::fixed(now, 4));
  return line + "," + std::to_string(facts.peak_live.bytes) + "\n";
}

}  // namespace

std::string csv_text(const Report& report) {
  std::string text =
      "allocator,library,death_event,runs,wall_ns_median,wall_ns_min,wall_ns_max,cpu_ns_median,ns_per_call,"
      "minor_faults_median,peak_resident_bytes,fragmentation,peak_live_bytes\n";
  for (const Result& result : report.results) text += row(result, report);
  return text + row(report.baseline, report);
}

}  // namespace cmt::replay
