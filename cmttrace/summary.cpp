#include "cmttrace/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <system_error>
#include <utility>

#include "toolkit/output/numbers.h"

namespace cmt::trace_launcher {
namespace {

using output::counted;

/// "app.cmt", "2 traces, app.cmt and app.7.cmt", "79 traces, the largest app.cmt, app.7.cmt and app.9.cmt".
std::string name_files(const std::vector<command::RecordedFile>& files) {
  constexpr std::size_t named_max = 3;
  const std::size_t named = std::min(files.size(), named_max);
  std::string text = files.size() == 1 ? "" : counted(files.size(), "trace") + ", ";
  if (files.size() > named) text += "the largest ";
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : i + 1 < named ? ", " : " and ") + files[i].path;
  return text;
}

/// What is missing in the traces, and why.
std::vector<std::string> list_losses(const command::RecordedTraces& recorded) {
  std::vector<std::string> losses;
  if (recorded.repairs != 0) losses.push_back(counted(recorded.repairs, "event") + " lost or in doubt");
  std::uint64_t dropped = 0, kept_ns = 0, unseen = 0, bypasses = 0, stacks_unknown = 0, stacks_cut = 0;
  std::string bypass;
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> stopped;  // by reason: traces, and the last one's end
  for (const command::BegunTrace& trace : recorded.traces) {
    dropped += trace.dropped_events;
    kept_ns = std::max(kept_ns, trace.kept_ns);
    unseen += trace.unseen;
    stacks_unknown += trace.stacks_unknown;
    stacks_cut += trace.stacks_cut;
    bypasses += trace.bypasses;
    if (bypass.empty()) bypass = trace.bypass;
    if (!trace.stopped.empty()) stopped[trace.stopped] = {stopped[trace.stopped].first + 1, trace.recorded_ns};
  }
  if (dropped != 0) {
    losses.push_back("the last " + output::time_text(static_cast<double>(kept_ns)) + " are kept, and not the " +
                     counted(dropped, "event") + " before");
  }
  if (unseen != 0) losses.push_back(counted(unseen, "block") + " freed whose allocation was not seen");
  if (bypasses != 0) {
    losses.push_back("calls by " + bypass + (bypasses > 1 ? " and " + counted(bypasses - 1, "other module") : "") +
                     " not seen (RTLD_DEEPBIND or dlmopen)");
  }
  if (stacks_unknown != 0) losses.push_back("the call stacks of " + counted(stacks_unknown, "event") + " not known");
  if (stacks_cut != 0)
    losses.push_back("the call stacks of " + counted(stacks_cut, "event") + " cut, as there are too many");
  for (const auto& [reason, end] : stopped) {
    const std::string by = reason == "fault" ? "an error that libcmttrace reported" : "--" + reason;
    losses.push_back(end.first == 1
                         ? "stopped by " + by + " in the first " + output::time_text(static_cast<double>(end.second))
                         : counted(end.first, "trace") + " stopped by " + by);
  }
  return losses;
}

}  // namespace

std::string summary(const command::RecordedTraces& recorded, double seconds) {
  if (recorded.files.empty() && !recorded.encoding.empty()) return "the command has ended";
  if (recorded.files.empty()) return "nothing was recorded";
  std::string text = counted(recorded.events, "event") + " of " + counted(recorded.threads, "thread") + " in ";
  text += name_files(recorded.files);
  text += ": " + output::with_commas(recorded.bytes) + " bytes";
  if (recorded.events != 0) {
    text += ", " + output::fixed(static_cast<double>(recorded.bytes) / static_cast<double>(recorded.events), 3) +
            " an event";
  }
  text += "; " + output::time_text(seconds * 1e9) + "; ";
  std::uint64_t time_step_ns = 0;
  for (const command::BegunTrace& trace : recorded.traces) time_step_ns = std::max(time_step_ns, trace.time_step_ns);
  if (time_step_ns != 0) text += "times to within " + output::time_text(static_cast<double>(time_step_ns)) + "; ";
  std::vector<std::string> losses = list_losses(recorded);
  if (recorded.broken != 0) {
    losses.push_back(counted(recorded.broken, "trace") + " could not be written to the end" +
                     (recorded.error != 0 ? ": " + std::generic_category().message(recorded.error) : ""));
  }
  if (recorded.refused != 0) losses.push_back(counted(recorded.refused, "process") + " not recorded");
  if (losses.empty()) losses.push_back("nothing was lost");
  for (std::size_t i = 0; i < losses.size(); ++i) text += (i == 0 ? "" : "; ") + losses[i];
  const unsigned explained = recorded.broken + recorded.faulty;
  if (recorded.unfinished > explained) text += "; " + counted(recorded.unfinished - explained, "trace") + " not ended";
  return text;
}

bool has_failed(const command::RecordedTraces& recorded) {
  return (recorded.files.empty() && recorded.encoding.empty()) || recorded.unreadable != 0 || recorded.broken != 0 ||
         recorded.faulty != 0 || recorded.refused != 0;
}

void EncodingProgress::show(const std::vector<command::BegunTrace>& traces) {
  std::uint64_t encoded = 0, waiting = 0;
  for (const command::BegunTrace& trace : traces) {
    if (trace.ended) continue;
    encoded += trace.encoded;
    waiting += trace.waiting;
  }
  if (waiting == 0) return view_->clear();
  const auto now = std::chrono::steady_clock::now();
  if (waiting > first_waiting_) {  // the first time, or of one more process
    first_waiting_ = waiting;
    first_ = now;
  }
  std::string line = "cmttrace: encoding: " + output::with_commas(encoded) + " of " +
                     output::with_commas(encoded + waiting) + " events";
  const double per_second =
      static_cast<double>(first_waiting_ - waiting) / std::chrono::duration<double>(now - first_).count();
  if (first_waiting_ != waiting)
    line += ", " + output::fixed(std::ceil(static_cast<double>(waiting) / per_second), 0) + " s left";
  view_->show({line});
}

}  // namespace cmt::trace_launcher
