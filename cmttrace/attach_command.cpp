// Attaches, waits until something ends the recording, detaches, and reports.
#include "cmttrace/attach_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cmttrace/attach/recording/target_root.h"
#include "cmttrace/attach/session.h"
#include "cmttrace/flight.h"
#include "cmttrace/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/command/output_path.h"
#include "toolkit/launch/trace_status.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/stat.h"
#include "toolkit/remote_call/injected_call.h"

namespace cmt::trace_launcher {
namespace {

using Clock = std::chrono::steady_clock;

std::string time_text(std::chrono::nanoseconds time) { return output::time_text(static_cast<double>(time.count())); }

std::string pauses_text(const remote_call::Pauses& pauses) {
  return "stopped for " + time_text(pauses.stopped) + ", and kept from its own work for " + time_text(pauses.kept);
}

/// The collector, which is our child: it is waited for, but not ended with us.
class Collector {
 public:
  explicit Collector(pid_t pid) : pid_(pid), fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  int fd() const { return fd_.get(); }
  bool has_ended() {
    if (!has_ended_) has_ended_ = waitpid(pid_, nullptr, WNOHANG) == pid_;
    return has_ended_;
  }

 private:
  pid_t pid_;
  process::Fd fd_;
  bool has_ended_ = false;
};

enum class End { signal, time, program, collector };

/// The events that cmttrace waits for while it records a process that it has not started.
class Recording {
 public:
  Recording(const remote_call::Target& target, Collector& collector, command::Interrupts& interrupts,
            const launch::TraceStatusFile& traces, const Options& options)
      : target_(target), collector_(collector), interrupts_(interrupts), duration_(options.duration) {
    if (options.keeps || !options.profiles.empty()) kept_.emplace(traces);
  }

  /// Reports the files that have been written since the last call.
  void report_kept() {
    if (kept_) kept_->look(false);
  }

  /// Waits for the end of the recording. `requests`: SIGUSR1, if a file can be asked for.
  End await_end(std::optional<command::HeldSignals>& requests) {
    for (;;) {
      if (duration_ && Clock::now() >= begin_ + *duration_) return End::time;
      pollfd ends[] = {{interrupts_.fd(), POLLIN, 0},
                       {target_.descriptor(), POLLIN, 0},
                       {collector_.fd(), POLLIN, 0},
                       {requests ? requests->fd() : -1, POLLIN, 0}};
      poll(ends, std::size(ends), timeout_ms());
      if (kept_) kept_->look(ends[3].revents != 0 && requests->take_info());
      if (ends[0].revents != 0 && interrupts_.take() != 0) return End::signal;
      if (ends[1].revents != 0) return End::program;
      if (ends[2].revents != 0) return End::collector;
    }
  }

 private:
  int timeout_ms() const {
    constexpr std::int64_t look_ms = 200, rarely_ms = 1'000'000;
    const std::int64_t most = kept_ ? look_ms : rarely_ms;
    if (!duration_) return kept_ ? static_cast<int>(most) : -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(begin_ + *duration_ - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, most));
  }

  const remote_call::Target& target_;
  Collector& collector_;
  command::Interrupts& interrupts_;
  const std::optional<std::chrono::nanoseconds> duration_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<FlightFiles> kept_;
};

/// Returns false if a signal has come first.
bool await_trace(Collector& collector, command::Interrupts& interrupts, const launch::TraceStatusFile& traces) {
  constexpr int step_ms = 10;
  EncodingProgress progress;
  while (!collector.has_ended()) {
    if (progress.due()) progress.show(traces.begun());
    pollfd ends[] = {{interrupts.fd(), POLLIN, 0}, {collector.fd(), POLLIN, 0}};
    if (poll(ends, std::size(ends), step_ms) > 0 && interrupts.take() != 0) return false;
  }
  progress.clear();
  return true;
}

/// Throws as attach::detach().
remote_call::Pauses end_recording(remote_call::Target& target) {
  attach::Detached detached;
  remote_call::as_tracer([&] { detached = attach::detach(target); });
  if (!detached.is_released)
    say("process " + target.called() + " keeps the memory of the recording: a thread is inside of libcmttrace.so");
  return detached.pauses;
}

/// The program may end at any time; then there is nothing to detach from. Waits for another cmttrace that detaches at
/// this moment.
void end_recording_if_it_runs(remote_call::Target& target) {
  constexpr std::chrono::seconds other_within(5);
  constexpr std::chrono::milliseconds step(10);
  for (const auto deadline = Clock::now() + other_within;;) {
    try {
      end_recording(target);
      return;
    } catch (const std::runtime_error&) {
      if (target.has_ended() || !attach::is_attached(target)) return;
      if (Clock::now() >= deadline || process::read_status(target.pid()).tracer == 0) throw;
    }
    std::this_thread::sleep_for(step);
  }
}

/// Handles the end of the collector: another cmttrace has detached, and is left alone with that, or the collector was
/// killed.
void end_recording_without_collector(remote_call::Target& target) {
  constexpr std::chrono::seconds other_within(1);
  constexpr std::chrono::milliseconds step(10);
  for (const auto deadline = Clock::now() + other_within; attach::is_attached(target);
       std::this_thread::sleep_for(step)) {
    if (Clock::now() >= deadline) return end_recording_if_it_runs(target);
  }
}

attach::AttachPlan plan_of(const Options& options, const launch::TraceStatusFile& traces) {
  attach::AttachPlan plan;
  plan.library = launch::tracer_path();
  plan.collector = launch::collector_path();
  plan.settings = options.environment;
  plan.status_path = traces.setting();
  if (plan.status_path.starts_with('-')) plan.status_path.erase(0, 1);
  if (options.follow) plan.children = {plan.collector, options.output, plan.status_path};
  plan.ignores_filter = options.force;
  return plan;
}

std::string setting(const Options& options, const std::string& name) {
  for (const auto& [variable, value] : options.environment) {
    if (variable == name) return value;
  }
  return {};
}

void say_what_is_not_seen(const remote_call::Target& target, const std::string& message) {
  if (target.zones().has_malloc_in_program())
    say("the program has a malloc of its own: only calls through relocations are recorded, as those of its libraries");
  if (!message.empty()) say(message);
}

/// Names functions of a process that sees other files, while its root folder is still known.
void name_functions(const attach::TargetRoot& root, const Options& options, const launch::TraceStatusFile& traces) {
  if (!root.is_other() || setting(options, "CMTTRACE_STACKS") != "1") return;
  std::vector<std::string> paths;
  for (const launch::BegunTrace& trace : traces.begun()) {
    paths.push_back(trace.path);
    for (const launch::FlightFile& kept : trace.kept_files) {
      if (kept.error == 0) paths.push_back(kept.path);
    }
  }
  for (const std::string& why : attach::name_functions(root, paths)) say(why);
}

/// A symbolic link to a trace is followed when the trace is created.
std::string output_of(const Options& options) {
  const std::string first = options.has_trace ? options.output.substr(0, options.output.find(',')) : options.profiles;
  const bool is_fixed = first.find("%n") == first.npos && first.find("%p") == first.npos;
  return is_fixed ? command::follow_links(launch::absolute_templates(first)) : first;
}

int record(const Options& options) {
  command::Interrupts interrupts;  // a signal that comes during the attach ends it after that
  std::optional<command::HeldSignals> requests;
  if (options.keeps || !options.profiles.empty()) requests.emplace(command::signal_set({SIGUSR1}));
  const launch::TraceStatusFile traces(output_of(options), options.has_trace);
  remote_call::Target target(options.attach);
  const attach::TargetRoot root(options.attach);
  attach::Attached attached;
  {
    attach::TraceFiles files(options.has_trace ? options.output : "", setting(options, "CMTTRACE_CONTROL"),
                             options.profiles, attach::program_of(target.pid()), target.pid());
    const attach::AttachPlan plan = plan_of(options, traces);
    remote_call::as_tracer([&] { attached = attach::attach(target, files, plan); });
  }
  const auto begin = Clock::now();
  say("records process " + target.called() + "; a thread of it was " + pauses_text(attached.pauses) +
      "; Ctrl-C ends the recording, not the process");
  const std::string message = attached.message();
  say_what_is_not_seen(target, message);
  Collector collector(attached.collector);
  Recording recording(target, collector, interrupts, traces, options);
  const End end = recording.await_end(requests);
  if (end == End::signal || end == End::time) end_recording_if_it_runs(target);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (end == End::collector) end_recording_without_collector(target);
  if (!await_trace(collector, interrupts, traces)) {
    say("the trace is not complete yet: the collector goes on writing it, and cmt's tools wait for that");
    return 0;
  }
  recording.report_kept();
  if (const std::string later = attached.message(); later != message) say(later);
  name_functions(root, options, traces);
  const auto recorded = launch::wait_for_traces(traces, say, [&](int changes, int milliseconds) {
    pollfd ready[] = {{interrupts.fd(), POLLIN, 0}, {changes, POLLIN, 0}};
    poll(ready, std::size(ready), milliseconds);
    return ready[0].revents != 0 && interrupts.take() != 0;
  });
  if (target.has_ended()) say("process " + target.called() + " has ended");
  const RecordingEnd figures{.seconds = seconds,
                             .has_stacks = options.has_stacks,
                             .has_trace = options.has_trace,
                             .is_verbose = options.verbose};
  for (const std::string& text : summarise(recorded, figures)) say(text);
  return has_failed(recorded) ? command::status_failed : 0;
}

/// Runs `work`, which may throw that the process cannot be attached to, and returns its exit status.
template <class Work>
int refusing(Work work) {
  try {
    return work();
  } catch (const remote_call::Refused& refused) {
    say(refused.what());
  } catch (const remote_call::ThreadGone& gone) {
    say(gone.what());
  } catch (const remote_call::CallStuck& stuck) {
    say(stuck.what());
  }
  return command::status_failed;
}

}  // namespace

int run_attach(const Options& options) {
  return refusing([&] { return record(options); });
}

int run_detach(const Options& options) {
  return refusing([&] {
    remote_call::Target target(options.detach);
    const remote_call::Pauses pauses = end_recording(target);
    say("process " + target.called() + " is no longer recorded; a thread of it was " + pauses_text(pauses));
    return 0;
  });
}

}  // namespace cmt::trace_launcher
