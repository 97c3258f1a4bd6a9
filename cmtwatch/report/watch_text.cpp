// Words the samples and the peak of cmtwatch run and get for people.
#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "cmtwatch/report/watch_report.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

/// Processes that --pause could not stop.
std::string not_stopped(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " not paused";
}

/// Calls `visit` with every process and its depth, parents before children. A process whose parent is not watched has
/// depth 0.
void walk(const std::vector<ProcessReading>& processes,
          const std::function<void(const ProcessReading&, unsigned)>& visit) {
  const auto is_here = [&](int pid) {
    return std::any_of(processes.begin(), processes.end(), [pid](const auto& process) { return process.pid == pid; });
  };
  const std::function<void(int, unsigned)> below = [&](int parent, unsigned depth) {
    for (const ProcessReading& process : processes) {
      if (process.parent != parent || process.pid == parent) continue;
      visit(process, depth);
      below(process.pid, depth + 1);
    }
  };
  for (const ProcessReading& process : processes) {
    if (is_here(process.parent)) continue;
    visit(process, 0);
    below(process.pid, 1);
  }
}

/// Live bytes, with their interval if they are an estimate.
std::string live_amount(const Estimate& live, bool in_bytes) {
  if (live.interval == 0) return amount(analysis::whole(live.bytes), in_bytes);
  if (!in_bytes) return analysis::estimate_text(live);
  const analysis::Range range = interval95(live);
  return amount(analysis::whole(live.bytes), in_bytes) + " (" + amount(analysis::whole(range.low), in_bytes) + " to " +
         amount(analysis::whole(range.high), in_bytes) + ")";
}

std::string fragmentation_text(std::uint64_t bytes, const Estimate& live) {
  const auto over = [bytes](double below) { return output::fixed(static_cast<double>(bytes) / below, 2); };
  if (live.interval == 0) return over(live.bytes);
  const analysis::Range range = interval95(live);
  return over(live.bytes) + " (" + over(range.high) + " to " + over(range.low) + ")";
}

/// Lists the processes, each below its parent; with a column of live bytes if they are traced.
std::string tree(const Sample& sample, const WatchOptions& options) {
  const std::size_t width = options.trace.samples() ? 34 : 12;
  const auto live = [&](const std::optional<Estimate>& one) {
    if (!sample.live) return std::string();
    return one ? output::padded(live_amount(*one, options.bytes), width) + " live"
               : output::padded("not traced", width + 5);
  };
  std::string text;
  walk(sample.by_process, [&](const ProcessReading& process, unsigned depth) {
    text +=
        output::padded(process.bytes ? amount(*process.bytes, options.bytes) : "not readable", 12) + live(process.live);
    text += output::padded(std::to_string(process.pid), 9) + std::string(2 + 2 * depth, ' ') +
            text::to_line(process.name) + "\n";
  });
  if (sample.by_process.size() > 1)
    text += output::padded(amount(sample.bytes, options.bytes), 12) + live(sample.live) + "  in all\n";
  return text;
}

std::string sample_line(const Sample& sample, const WatchOptions& options) {
  const bool one_answer = options.pace.count == 1;
  std::string text = one_answer ? "" : output::padded(output::seconds_text(sample.begin_ns), 12) + " ";
  text += one_answer ? amount(sample.bytes, options.bytes) : output::padded(amount(sample.bytes, options.bytes), 12);
  if (sample.refused != 0) text += "  (" + refusals(sample.refused) + ")";
  if (sample.not_paused != 0) text += "  (" + not_stopped(sample.not_paused) + ")";
  return text + "\n";
}

/// The live bytes at the peak, and the traces.
std::string traced_line(const WatchResult& result, const WatchOptions& options) {
  const CommandTraces& traced = *result.traced;
  if (traced.traces.empty()) return "nothing was traced\n";
  std::string text;
  if (result.peak && result.peak->live) {
    const Estimate& estimate = *result.peak->live;
    const std::uint64_t live = analysis::whole(estimate.bytes), bytes = result.peak->bytes;
    const bool was_attached = options.command.empty();
    text = "at the peak: " + live_amount(estimate, options.bytes) + " live in ";
    text += estimate.interval == 0 ? output::counted(analysis::whole(estimate.blocks), "block")
                                   : analysis::blocks_text(estimate) + " blocks";
    if (was_attached) text += " asked for since the attach";
    if (estimate.interval != 0)
      text += ", estimated from " + output::counted(estimate.samples, "sample") + " (95 % intervals)";
    text += bytes >= live ? "; " + amount(bytes - live, options.bytes) + " is other memory"
                          : ", " + amount(live - bytes, options.bytes) + " of it not resident";
    if (was_attached)
      text += bytes >= live ? ", with the blocks from before" : "";
    else if (live != 0)
      text += "; fragmentation " + fragmentation_text(bytes, estimate);
    if (result.peak->untraced != 0) text += " (" + output::with_commas(result.peak->untraced) + " not traced)";
  } else {
    text = "at the peak: live bytes are not known";
  }
  std::uint64_t events = 0;
  for (const ProcessTrace& trace : traced.traces) events += trace.events;
  text += "; " + output::counted(events, "event") + " in " + traced.traces.front().path;
  if (traced.traces.size() != 1) text += " and " + output::with_commas(traced.traces.size() - 1) + " more";
  if (traced.losses.empty()) text += ", nothing was lost";
  for (const std::string& loss : traced.losses) text += ", " + loss;
  const auto broken =
      std::count_if(traced.traces.begin(), traced.traces.end(), [](const auto& one) { return !one.whole; });
  if (broken != 0) text += ", " + std::to_string(broken) + " not ended";
  if (traced.cpu_ns && result.elapsed_ns != 0) {
    const double share = static_cast<double>(*traced.cpu_ns) / static_cast<double>(result.elapsed_ns);
    text += "; collecting took " + output::fixed(share * 100, 1) + " % of a processor";
  }
  return text + "\n";
}

std::string not_known(const WatchResult& result) {
  return result.samples == 0 ? "peak not known: the command ended before the first sample" : "peak not readable";
}

/// Returns the highest figure that is known to have been reached, or nullopt.
std::optional<std::uint64_t> peak_at_least(const WatchResult& result, const WatchOptions& options) {
  const auto sampled = result.peak ? std::optional(result.peak->bytes) : std::nullopt;
  const bool by_mark = options.metric == Metric::rss && result.mark.bytes > sampled.value_or(0);
  return by_mark ? std::optional(result.mark.bytes) : sampled;
}

std::string mark_text(const WatchResult& result, const WatchOptions& options) {
  if (result.mark.bytes == 0) return "; VmHWM is not known";
  const std::string bytes = amount(result.mark.bytes, options.bytes) + " (VmHWM)";
  if (result.peak_missed()) return "; samples missed the command's highest resident set, " + bytes;
  return std::string("; the command's highest resident set was ") + (result.mark.at_end ? "" : "at least ") + bytes;
}

std::string peak_line(const WatchResult& result, const WatchOptions& options) {
  if (result.samples == 0) return not_known(result) + mark_text(result, options) + "\n";
  std::string text = "peak ";
  if (!result.peak) {
    text += "not readable";
  } else {
    if (result.peak_missed()) text += "at least ";
    text += amount(result.peak->bytes, options.bytes) + " " + std::string(name_of(options.metric)) + " at " +
            output::seconds_text(result.peak->begin_ns) + " (" + wall_text(result.peak->wall_ns) + ")";
    if (result.peak->refused != 0) text += " (" + refusals(result.peak->refused) + ")";
    if (result.peak->not_paused != 0) text += " (" + not_stopped(result.peak->not_paused) + ")";
  }
  text += "; " + output::with_commas(result.samples) + (result.samples == 1 ? " sample" : " samples, one every ");
  if (result.samples != 1) text += output::time_text(static_cast<double>(options.pace.interval_ns));
  text += result.left_out_text();
  // One look, without a command to wait for, is all of the elapsed time.
  if (result.samples != 1 || result.missed + result.skipped != 0 || !options.command.empty())
    text += "; measuring took " + output::fixed(result.cpu_share() * 100, 1) + " % of a processor";
  if (options.pause) text += "; " + result.pauses.text();
  if (!options.command.empty()) text += mark_text(result, options);
  return text + "\n";
}

}  // namespace

std::string refusals(unsigned count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " could not be read";
}

void WatchReport::show_text(const Sample& sample) {
  if (!options_.each) return;
  const bool tree_below_command = options_.verbose && !options_.command.empty();
  if (columns_.active() && options_.pace.count != 1 && !tree_below_command) {
    last_ = sample;
    if (peak_.processes == 0 || sample.bytes > peak_.bytes) peak_ = sample;
    return columns_.add(sample.bytes);
  }
  const bool alone = options_.verbose && options_.pace.count == 1;
  destination_.write((alone ? "" : sample_line(sample, options_)) + (options_.verbose ? tree(sample, options_) : ""));
}

std::string WatchReport::group_line(const WatchResult& result) const {
  if (!is_text() || options_.peak == WatchOptions::Peak::only || !result.group_peak) return "";
  const GroupReading& group = result.group_peak->group;
  const auto amount_of = [this](std::uint64_t bytes) { return amount(bytes, options_.bytes); };
  std::string text = group_text(group, is_in_use(options_.metric) ? name_of(options_.metric) : "", amount_of);
  if (options_.pace.count == 1) return text;
  text += "; at " + output::seconds_text(result.group_peak->begin_ns);
  for (const GroupReading& first : result.groups_at_first) {
    if (first.memory.path == group.memory.path)
      text += ", and " + amount_of(first.memory.current) + " at its first sample";
  }
  return text;
}

LiveColumns::Text WatchReport::live_text() const {
  std::string head = output::padded(output::seconds_text(last_.begin_ns), 12) +
                     output::padded(amount(last_.bytes, options_.bytes), 12) + " " +
                     std::string(name_of(options_.metric)) + ", peak " + amount(peak_.bytes, options_.bytes) + " at " +
                     output::seconds_text(peak_.begin_ns);
  if (last_.refused != 0) head += "  (" + refusals(last_.refused) + ")";
  std::vector<std::string> below;
  std::istringstream processes(options_.verbose ? tree(last_, options_) : "");
  for (std::string line; std::getline(processes, line);) below.push_back(line);
  return {head, below};
}

void WatchReport::end_text(const WatchResult& result) {
  columns_.clear();
  if (options_.peak == WatchOptions::Peak::without) return;
  if (options_.peak == WatchOptions::Peak::only) {
    const auto bytes = peak_at_least(result, options_);
    if (!bytes) throw std::runtime_error(not_known(result));
    return destination_.write(amount(*bytes, options_.bytes) + "\n");
  }
  destination_.write(peak_line(result, options_) + (result.traced ? traced_line(result, options_) : ""));
  const std::string group = group_line(result);
  if (!options_.command.empty() && !group.empty()) destination_.write(group + "\n");
  if (options_.verbose && result.peak && !options_.each) destination_.write(tree(*result.peak, options_));
}

}  // namespace cmt::watch
