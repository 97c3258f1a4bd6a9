// Draws the memory of watched processes over time: lines, bands by process, or live bytes.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "cmtwatch/report/watch_report.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

using picture::Panel;
using picture::Series;

/// Processes that have a band of their own; the others share one. With two lines that makes eight colours.
constexpr std::size_t bands_max = 5;

Series total_of(const std::vector<Sample>& samples, const std::string& name) {
  Series series{name, {}, {}, Series::Form::step};
  for (const Sample& sample : samples) {
    if (sample.processes != 0) series.add(sample.begin_ns, sample.bytes);  // not readable is no 0
  }
  return series;
}

/// The processes with the highest peaks, the largest first.
std::vector<std::pair<int, std::string>> largest_processes(const std::vector<Sample>& samples) {
  std::map<int, std::pair<std::uint64_t, std::string>> most;
  for (const Sample& sample : samples) {
    for (const ProcessReading& process : sample.by_process) {
      auto& [bytes, name] = most[process.pid];
      bytes = std::max(bytes, process.bytes.value_or(0));
      name = process.name;
    }
  }
  std::vector<std::pair<int, std::string>> processes;
  for (const auto& [pid, entry] : most) processes.emplace_back(pid, entry.second);
  std::stable_sort(processes.begin(), processes.end(),
                   [&](const auto& a, const auto& b) { return most.at(a.first).first > most.at(b.first).first; });
  if (processes.size() > bands_max) processes.resize(bands_max);
  return processes;
}

/// The colour of the line of all, and of the band of other processes.
constexpr unsigned grey = 2;

/// Stacked bands: one for each of the largest processes, and one for the rest above them. Processes of one program have
/// one colour.
std::vector<Series> bands_of(const std::vector<Sample>& samples) {
  constexpr std::array<unsigned, bands_max> looks{0, 1, 4, 5, 6};
  std::vector<Series> bands;
  std::map<int, std::size_t> band_of;
  std::map<std::string, unsigned> look_of;
  for (const auto& [pid, name] : largest_processes(samples)) {
    band_of[pid] = bands.size();
    const unsigned look = look_of.try_emplace(name, looks.at(look_of.size())).first->second;
    bands.push_back({name + " " + std::to_string(pid), {}, {}, Series::Form::step_band, {}, look});
  }
  bands.push_back({"others", {}, {}, Series::Form::step_band, {}, grey});
  for (const Sample& sample : samples) {
    for (Series& band : bands) band.add(sample.begin_ns, 0);
    for (const ProcessReading& process : sample.by_process) {
      const auto own = band_of.find(process.pid);
      Series& band = own == band_of.end() ? bands.back() : bands[own->second];
      band.y.back() += static_cast<double>(process.bytes.value_or(0));
    }
  }
  const auto& others = bands.back().y;
  if (std::all_of(others.begin(), others.end(), [](double bytes) { return bytes == 0; })) bands.pop_back();
  return bands;
}

/// Live bytes, and on them the resident bytes beyond: two bands whose top is the resident line, unless more is live
/// than resident.
std::vector<Series> live_bands_of(const std::vector<Sample>& samples) {
  Series live{"live: asked for", {}, {}, Series::Form::step_band};
  Series beyond{"beyond: fragmentation, caches, all that is not malloc's", {}, {}, Series::Form::step_band};
  for (const Sample& sample : samples) {
    if (!sample.live || sample.processes == 0) continue;
    const std::uint64_t bytes = analysis::whole(sample.live->bytes);
    live.add(sample.begin_ns, bytes);
    beyond.add(sample.begin_ns, sample.bytes - std::min(sample.bytes, bytes));
  }
  return {live, beyond};
}

/// The ends of the 95 % intervals of live bytes that are estimates.
std::vector<Series> interval_lines_of(const std::vector<Sample>& samples) {
  constexpr unsigned look = 7;
  Series low{"live, 95 % interval: lower end", {}, {}, Series::Form::step, {}, look};
  Series high{"live, 95 % interval: upper end", {}, {}, Series::Form::step, {}, look};
  for (const Sample& sample : samples) {
    if (!sample.live || sample.processes == 0) continue;
    const analysis::Range range = interval95(*sample.live);
    low.add(sample.begin_ns, range.low);
    high.add(sample.begin_ns, range.high);
  }
  return {low, high};
}

Series live_line_of(const std::vector<Sample>& samples) {
  Series live = live_bands_of(samples).front();
  live.form = Series::Form::step;
  return live;
}

std::string title_of(const WatchOptions& options) {
  if (options.command.empty()) return "process " + std::to_string(options.pid);
  std::string title;
  for (const std::string& word : options.command) title += (title.empty() ? "" : " ") + word;
  constexpr std::size_t length_max = 80;
  title = text::to_line(title);
  return title.size() <= length_max ? title : title.substr(0, length_max) + "...";
}

std::string live_text(const Estimate& live) {
  return live.interval == 0 ? output::bytes_text(analysis::whole(live.bytes)) : analysis::estimate_text(live);
}

/// Returns the subtitle, which also counts the processes that could not be read and are in no line.
std::string subtitle_of(const std::vector<Sample>& samples, const WatchResult& result, const std::string& metric) {
  std::string text = output::counted(result.samples, "sample");
  if (result.peak) text += ", peak " + output::bytes_text(result.peak->bytes) + " " + metric;
  if (result.peak && result.peak->live) text += ", live at the peak " + live_text(*result.peak->live);
  unsigned refused = 0;
  for (const Sample& sample : samples) refused = std::max(refused, sample.refused);
  return refused == 0 ? text : text + ", " + refusals(refused);
}

}  // namespace

picture::Picture watch_picture(const WatchOptions& options, const std::vector<Sample>& samples,
                               const WatchResult& result) {
  const std::string metric(name_of(options.metric));
  Panel panel = bytes_over_time("memory over time", "memory (" + metric + ")");
  const bool traced = result.traced.has_value();
  panel.series.push_back(total_of(samples, traced ? metric + ": paid for" : options.verbose ? "in all" : metric));
  if (options.verbose) panel.series.back().look = grey;
  const auto bands = options.verbose ? bands_of(samples) : traced ? live_bands_of(samples) : std::vector<Series>();
  panel.series.insert(panel.series.end(), bands.begin(), bands.end());
  if (options.verbose && traced) panel.series.push_back(live_line_of(samples));
  if (options.trace.samples()) {
    for (Series& line : interval_lines_of(samples)) panel.series.push_back(std::move(line));
  }
  return {title_of(options), subtitle_of(samples, result, metric), {panel}};
}

}  // namespace cmt::watch
