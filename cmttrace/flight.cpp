// Checks the value of --keep, finds the collectors of a command, and reports the files that they write.
#include "cmttrace/flight.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "cmttrace/summary.h"
#include "preload/text.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"

namespace cmt::trace_launcher {
namespace {

using command::CommandLine;
using command::UsageError;

constexpr int look_ms = 500;

/// Turns a size or a time into the form of the tracer's variable.
std::string bound_for_tracer(const std::string& text) {
  Keep keep{};
  const auto ns = command::parse_duration(text);
  const std::string bound = ns ? std::to_string(static_cast<std::uint64_t>(*ns)) + "ns" : text;
  return read_keep(bound.c_str(), &keep) ? bound : "";
}

/// Another process may have got the number of a collector that has ended, or a line may state any number. So the file
/// that the process executes is compared.
bool is_collector(int process) {
  struct stat ours {
  }, its{};
  return stat(launch::collector_path().c_str(), &ours) == 0 &&
         stat(process::path_of(process, "exe").c_str(), &its) == 0 && ours.st_dev == its.st_dev &&
         ours.st_ino == its.st_ino;
}

/// Returns a line about what --keep-at watches in a process where no control group serves; empty: one does.
std::string watched_text(const launch::BegunTrace& trace) {
  const std::string begin = "--keep-at: process " + std::to_string(trace.process) + " is in no control group ";
  if (trace.watched == "machine")
    return begin + "with a limit of memory: the memory of the machine, and the pressure on it, are watched instead";
  if (trace.watched == "process")
    return begin + "that counts memory: the anonymous memory of the process is watched instead";
  return "";
}

std::string kept_file_text(const launch::FlightFile& file) {
  if (file.error != 0)
    return file.path + ": what is kept cannot be written: " + std::generic_category().message(file.error);
  return "kept: " + output::counted(file.events, "event") + " of the last " +
         output::time_text(static_cast<double>(file.ns)) + " in " + file.path + ": " +
         output::counted(file.bytes, "byte");
}

}  // namespace

std::string flight_limits_for_tracer(const CommandLine& line) {
  const std::string text = line.value("keep", "");
  const std::size_t comma = text.find(',');
  std::string value = bound_for_tracer(text.substr(0, comma));
  if (!value.empty() && comma != text.npos) {
    const std::string second = bound_for_tracer(text.substr(comma + 1));
    value = second.empty() ? "" : value + "," + second;
  }
  Keep keep{};
  if (!read_keep(value.c_str(), &keep))
    throw UsageError("--keep: expected a time from 1s on, a size from 64K on, or both as in 10min,1G, not '" + text +
                     "'");
  for (const char* const other : {"rings", "max-bytes"}) {
    if (line.has(other)) throw UsageError("--keep and --" + std::string(other) + " do not go together");
  }
  const std::string output = line.value("output", "app.cmt");
  if (!output.ends_with(".cmt") || output.find(',') != output.npos)
    throw UsageError("--keep needs one output, in the compact form: -o NAME.cmt");
  return value;
}

std::string memory_mark_for_tracer(const CommandLine& line) {
  if (!line.has("keep")) throw UsageError("--keep-at goes with --keep, which says how much is kept");
  std::string value = line.value("keep-at", "");
  KeepAt at{};
  if (!read_keep_at(value.c_str(), &at))
    command::refuse_value("keep-at", "a share from 1% to 99%, or a size from 64K on", value);
  return value;
}

FlightFiles::FlightFiles(const launch::TraceStatusFile& traces) : traces_(traces) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
}

launch::Ended FlightFiles::wait(launch::RunningCommand& launched) {
  command::HeldSignals requests(command::signal_set({SIGUSR1}));
  for (;;) {
    const launch::LaunchEvent event = launched.handle();
    if (event.ended) {
      report_new();
      return *event.ended;
    }
    if (event.at_end) continue;
    pollfd ready[] = {{launched.fd(), POLLIN, 0}, {requests.fd(), POLLIN, 0}};
    look(poll(ready, 2, look_ms) > 0 && (ready[1].revents & POLLIN) != 0 && requests.take_info());
  }
}

void FlightFiles::look(bool is_asked) {
  if (is_asked) ask_collectors();
  report_new();
}

void FlightFiles::ask_collectors() const {
  for (const launch::BegunTrace& trace : traces_.begun()) {
    if (!trace.ended && trace.collector != 0 && is_collector(trace.collector)) kill(trace.collector, SIGUSR1);
  }
}

void FlightFiles::report_new() {
  for (const launch::BegunTrace& trace : traces_.begun()) {
    const std::string watched = watched_text(trace);
    if (!watched.empty() && watched_.emplace(trace.process, trace.start_ns).second) say(watched);
    std::size_t& reported = reported_[{trace.process, trace.start_ns}];
    for (; reported < trace.kept_files.size(); ++reported) say(kept_file_text(trace.kept_files[reported]));
  }
}

}  // namespace cmt::trace_launcher
