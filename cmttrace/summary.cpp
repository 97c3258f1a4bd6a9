// Words the line at the end of a recording from the status files of the collectors.
#include "cmttrace/summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"

namespace cmt::trace_launcher {
namespace {

using output::counted;

/// Names one of several traces, with its program if the file's name does not begin with it: "app.7.cmt (sed)".
std::string name_file(const launch::RecordedFile& file) {
  const std::string name = std::filesystem::path(file.path).filename();
  return file.program.empty() || name.starts_with(file.program + ".") ? file.path
                                                                      : file.path + " (" + file.program + ")";
}

/// "app.cmt", "2 traces, app.cmt and app.7.cmt (sed)", "79 traces, the largest app.cmt, app.7.cmt (sed) and ...".
std::string name_files(const std::vector<launch::RecordedFile>& files) {
  constexpr std::size_t named_max = 3;
  const std::size_t named = std::min(files.size(), named_max);
  if (files.size() == 1) return files[0].path;
  std::string text = counted(files.size(), "trace") + ", ";
  if (files.size() > named) text += "the largest ";
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : i + 1 < named ? ", " : " and ") + name_file(files[i]);
  return text;
}

}  // namespace

std::string summary(const launch::RecordedTraces& recorded, double seconds, int signal) {
  if (recorded.files.empty() && !recorded.encoding.empty()) return "the command has ended";
  if (recorded.files.empty()) {
    const std::string programs = launch::list_unrecorded(recorded);
    return std::string(recorded.unreadable == 0 ? "nothing was recorded" : "no trace can be read") +
           (programs.empty() ? "" : "; " + programs);
  }
  std::string text = counted(recorded.events, "event") + " of " + counted(recorded.threads, "thread") + " in ";
  text += name_files(recorded.files);
  text += ": " + output::counted(recorded.bytes, "byte");
  if (recorded.events != 0) {
    text += ", " + output::fixed(static_cast<double>(recorded.bytes) / static_cast<double>(recorded.events), 3) +
            " an event";
  }
  text += "; " + output::time_text(seconds * 1e9) + "; ";
  if (const char* const name = signal == 0 ? nullptr : ::sigabbrev_np(signal))
    text += "ended by SIG" + std::string(name) + "; ";
  std::uint64_t time_step_ns = 0;
  for (const launch::BegunTrace& trace : recorded.traces) time_step_ns = std::max(time_step_ns, trace.time_step_ns);
  if (time_step_ns != 0) text += "times to within " + output::time_text(static_cast<double>(time_step_ns)) + "; ";
  std::vector<std::string> losses = launch::list_losses(recorded);
  if (losses.empty()) losses.push_back("nothing was lost");
  for (std::size_t i = 0; i < losses.size(); ++i) text += (i == 0 ? "" : "; ") + losses[i];
  const unsigned explained = recorded.broken + recorded.faulty;
  if (recorded.unfinished > explained) text += "; " + counted(recorded.unfinished - explained, "trace") + " not ended";
  return text;
}

std::string Standstill::look(const std::vector<launch::BegunTrace>& traces, Clock::time_point now) {
  std::uint64_t progress = traces.size();
  const launch::BegunTrace* awaited = nullptr;
  for (const launch::BegunTrace& trace : traces) {
    progress += trace.encoded + (trace.ended ? 1 : 0);
    if (!trace.ended && awaited == nullptr) awaited = &trace;
  }
  if (progress != progress_ || !since_) {
    progress_ = progress;
    since_ = now;
    is_reported_ = false;
  }
  if (awaited == nullptr || is_reported_ || now - *since_ < patience) return {};
  is_reported_ = true;
  return awaited->path + ": its collector has made no progress for " + std::to_string(patience.count()) +
         " s. It may be stopped, or wait for a processor or a disk. Ctrl-C ends the wait";
}

void EncodingProgress::show(const std::vector<launch::BegunTrace>& traces) {
  const auto now = Standstill::Clock::now();
  shown_ = now;
  if (const std::string line = standstill_.look(traces, now); !line.empty()) {
    clear();
    command::complain("cmttrace", line);
  }
  std::uint64_t encoded = 0, waiting = 0;
  for (const launch::BegunTrace& trace : traces) {
    if (trace.ended) continue;
    encoded += trace.encoded;
    waiting += trace.waiting;
  }
  if (waiting == 0) return view_->clear();
  if (waiting > first_waiting_) {  // the first time, or of one more process
    first_waiting_ = waiting;
    first_ = now;
  }
  std::string line =
      "cmttrace: encoding: " + output::with_commas(encoded) + " of " + output::counted(encoded + waiting, "event");
  const double per_second =
      static_cast<double>(first_waiting_ - waiting) / std::chrono::duration<double>(now - first_).count();
  if (first_waiting_ != waiting)
    line += ", " + output::fixed(std::ceil(static_cast<double>(waiting) / per_second), 0) + " s left";
  view_->show({line});
}

}  // namespace cmt::trace_launcher
