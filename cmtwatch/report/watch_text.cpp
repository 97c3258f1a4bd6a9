#include <unistd.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "cmtwatch/report/watch_report.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/sparkline.h"

namespace cmt::watch {
namespace {

/// More columns than terminals have.
constexpr std::size_t samples_kept = 1024;

/// Those that --pause could not stop.
std::string runners(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " not paused";
}

/// Calls `visit` with every process and its depth, parents before children; who has no parent here is at depth 0.
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

}  // namespace

std::string refusals(unsigned count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " could not be read";
}

TextReport::TextReport(const Options& options, Destination& destination)
    : options_(options),
      destination_(destination),
      live_(output::make_terminal_view(destination.fd(),
                                       options.command.empty() ? output::Beside::nobody : output::Beside::command)) {}

std::string TextReport::amount(std::uint64_t bytes) const {
  return options_.bytes ? std::to_string(bytes) : output::bytes_text(bytes);
}

/// Where it is traced, with a column of what was live.
std::string TextReport::tree(const Sample& sample) const {
  const auto live = [&](const std::optional<Live>& one) {
    if (!sample.live) return std::string();
    return one ? output::padded(amount(one->bytes), 12) + " live" : output::padded("not traced", 17);
  };
  std::string text;
  walk(sample.by_process, [&](const ProcessReading& process, unsigned depth) {
    text += output::padded(process.bytes ? amount(*process.bytes) : "not readable", 12) + live(process.live);
    text += output::padded(std::to_string(process.pid), 9) + std::string(2 + 2 * depth, ' ') + process.name + "\n";
  });
  if (sample.by_process.size() > 1) text += output::padded(amount(sample.bytes), 12) + live(sample.live) + "  in all\n";
  return text;
}

std::string TextReport::line(const Sample& sample) const {
  const bool one_answer = options_.pace.count == 1;
  std::string text = one_answer ? "" : output::padded(output::seconds_text(sample.begin_ns), 12) + " ";
  text += one_answer ? amount(sample.bytes) : output::padded(amount(sample.bytes), 12);
  if (sample.refused != 0) text += "  (" + refusals(sample.refused) + ")";
  if (sample.not_paused != 0) text += "  (" + runners(sample.not_paused) + ")";
  return text + "\n";
}

void TextReport::sample(const Sample& sample) {
  if (!options_.each) return;
  const bool tree_below_command = options_.verbose && !options_.command.empty();
  if (live_->active() && options_.pace.count != 1 && !tree_below_command) {
    if (recent_.size() == samples_kept) recent_.erase(recent_.begin());
    recent_.push_back(sample.bytes);
    last_ = sample;
    if (sample.bytes >= peak_.bytes) peak_ = sample;
    return show_live();
  }
  const bool alone = options_.verbose && options_.pace.count == 1;
  destination_.write((alone ? "" : line(sample)) + (options_.verbose ? tree(sample) : ""));
}

void TextReport::resized() {
  if (recent_.empty()) return;
  live_->resized();
  show_live();
}

void TextReport::show_live() {
  if (!live_->due()) return;
  std::string head = output::padded(output::seconds_text(last_.begin_ns), 12) +
                     output::padded(amount(last_.bytes), 12) + " " + std::string(name_of(options_.metric)) + ", peak " +
                     amount(peak_.bytes) + " at " + output::seconds_text(peak_.begin_ns);
  if (last_.refused != 0) head += "  (" + refusals(last_.refused) + ")";
  const std::size_t width = live_->size().columns - 1;
  if (!options_.command.empty()) {
    const std::size_t left = width > head.size() + 2 ? width - head.size() - 2 : 0;
    return live_->show({head + "  " + output::sparkline(recent_, left)});
  }
  std::vector<std::string> lines{head, output::sparkline(recent_, width)};
  std::istringstream processes(options_.verbose ? tree(last_) : "");
  for (std::string line; std::getline(processes, line);) lines.push_back(line);
  live_->show(lines);
}

/// What was live at the peak, and where it stands.
std::string TextReport::traced_line(const Outcome& outcome) const {
  const Traced& traced = *outcome.traced;
  if (traced.traces.empty()) return "nothing was traced\n";
  std::string text;
  if (outcome.peak && outcome.peak->live) {
    const auto [live, blocks] = *outcome.peak->live;
    const std::uint64_t bytes = outcome.peak->bytes;
    text = "then live " + amount(live) + " in " + output::with_commas(blocks) + (blocks == 1 ? " block" : " blocks");
    text +=
        bytes >= live ? ", beyond them " + amount(bytes - live) : ", " + amount(live - bytes) + " of it not resident";
    if (live != 0)
      text += ", fragmentation " + output::fixed(static_cast<double>(bytes) / static_cast<double>(live), 2);
    if (outcome.peak->untraced != 0) text += " (" + output::with_commas(outcome.peak->untraced) + " not traced)";
  } else {
    text = "live then: not known";
  }
  std::uint64_t events = 0;
  for (const InsideTrace& trace : traced.traces) events += trace.events;
  text += "; " + output::with_commas(events) + " events in " + traced.traces.front().path;
  if (traced.traces.size() != 1) text += " and " + output::with_commas(traced.traces.size() - 1) + " more";
  text += traced.repairs == 0 ? ", nothing was lost" : ", " + output::with_commas(traced.repairs) + " lost or in doubt";
  const auto broken =
      std::count_if(traced.traces.begin(), traced.traces.end(), [](const auto& one) { return !one.whole; });
  if (broken != 0) text += ", " + std::to_string(broken) + " not ended";
  if (traced.cost_cpu_ns && outcome.elapsed_ns != 0) {
    const double share = static_cast<double>(*traced.cost_cpu_ns) / static_cast<double>(outcome.elapsed_ns);
    text += "; collecting took " + output::fixed(share * 100, 1) + " % of a processor";
  }
  return text + "\n";
}

std::string TextReport::peak_line(const Outcome& outcome, const std::optional<command::Ended>& ended) const {
  if (outcome.samples == 0) return "peak not measured: the command ended before the first sample\n";
  std::string text = "peak ";
  if (!outcome.peak) {
    text += "not readable";
  } else {
    text += amount(outcome.peak->bytes) + " " + std::string(name_of(options_.metric)) + " at " +
            output::seconds_text(outcome.peak->begin_ns);
    if (outcome.peak->refused != 0) text += " (" + refusals(outcome.peak->refused) + ")";
    if (outcome.peak->not_paused != 0) text += " (" + runners(outcome.peak->not_paused) + ")";
  }
  text += "; " + output::with_commas(outcome.samples) + (outcome.samples == 1 ? " sample" : " samples, one every ");
  if (outcome.samples != 1) text += output::time_text(static_cast<double>(options_.pace.interval_ns));
  if (outcome.missed != 0) text += ", " + output::with_commas(outcome.missed) + " missed";
  if (outcome.skipped != 0) text += ", " + output::with_commas(outcome.skipped) + " left out for their price";
  text += "; measuring took " + output::fixed(outcome.cost_share() * 100, 1) + " % of a processor";
  if (options_.pause) text += "; " + outcome.pauses.text();
  if (ended) {
    text += "; the kernel's highest resident set of one process " + amount(ended->resident_bytes_peak);
  }
  return text + "\n";
}

void TextReport::end(const Outcome& outcome, const std::optional<command::Ended>& ended) {
  live_->clear();
  if (options_.peak == Options::Peak::without) return;
  if (options_.peak == Options::Peak::only) {
    if (outcome.peak) destination_.write(amount(outcome.peak->bytes) + "\n");
    return;
  }
  destination_.write(peak_line(outcome, ended) + (outcome.traced ? traced_line(outcome) : ""));
  if (options_.verbose && outcome.peak && !options_.each) destination_.write(tree(*outcome.peak));
}

}  // namespace cmt::watch
