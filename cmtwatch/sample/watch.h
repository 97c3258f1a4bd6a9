/// Watches processes over time, and joins their samples with their traces.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/launch/trace_status.h"
#include "toolkit/output/fields.h"

namespace cmt::watch {

/// The trace of one process of a watched command.
struct ProcessTrace {
  std::string path;
  std::string program;
  int pid = 0;
  std::int64_t begin_ns = 0;  ///< since the watch began
  std::uint64_t events = 0;
  std::uint64_t live_bytes_peak = 0;                 ///< after any event, not only at samples
  bool whole = false;                                ///< false: it breaks off
  std::optional<std::uint64_t> sampling_interval{};  ///< in bytes, at the end; none: it has all blocks
};

template <class Visitor, output::DescribedAs<ProcessTrace> Trace>
void describe(Visitor& field, Trace& trace) {
  field("path", trace.path, "the trace's file");
  field("program", trace.program, "as the trace names it");
  field("pid", trace.pid, "of the traced process");
  field("begin_ns", trace.begin_ns, "the trace's begin, since the watch began");
  field("events", trace.events, "in the trace");
  field("live_bytes_peak", trace.live_bytes_peak, "the most live bytes after any event");
  field("sampling_interval_bytes", output::omit_if_empty(trace.sampling_interval),
        "of a sampled trace, at its end; live bytes are estimates then");
  field("whole", trace.whole, "false: the trace breaks off");
}

/// --trace: how processes are traced.
struct TraceOptions {
  std::string output{};        ///< the traces' files, as CMTTRACE_OUT; empty: nothing is traced
  std::string sample_bytes{};  ///< as CMTTRACE_SAMPLE_BYTES; empty: all blocks are recorded
  bool follow = false;         ///< the children too

  bool wanted() const { return !output.empty(); }
  bool samples() const { return !sample_bytes.empty(); }
};

/// The traces of a watched command, or of a process that was attached to.
struct CommandTraces {
  std::vector<ProcessTrace> traces{};    ///< by their start
  std::uint64_t repairs = 0;             ///< events that were lost or are in doubt
  std::vector<std::string> losses{};     ///< what is missing in the traces, and why; empty: nothing
  bool has_failed = false;               ///< by launch::has_failed(), or one of them cannot be read
  std::optional<std::int64_t> cpu_ns{};  ///< processor time of the collectors; none: not known
};

template <class Visitor, output::DescribedAs<CommandTraces> Traces>
void describe(Visitor& field, Traces& traces) {
  field("cost_cpu_ns", traces.cpu_ns, "processor time of the collectors");
  field("events_lost_or_in_doubt", traces.repairs, "over all traces");
  field("losses", traces.losses, "what is missing in the traces, and why; empty: nothing");
  field("traces", traces.traces, "a trace for each process, by their start");
}

/// The resident set of a command's process by the kernel's own account.
struct KernelMark {
  std::uint64_t bytes = 0;       ///< VmHWM: the highest at any time since it executed its program; 0: not known
  std::uint64_t seen_bytes = 0;  ///< VmRSS: the highest beside a sample
  bool at_end = false;           ///< read when the command was about to end; else only beside samples
};

/// A control group, and when it was read.
struct GroupAt {
  GroupReading group;
  std::int64_t begin_ns = 0;
};

/// The result of a watch.
struct WatchResult : SamplingCost {
  bool gone = false;  ///< the process had ended
  std::optional<Sample> peak{};
  std::optional<GroupAt> group_peak{};          ///< with the most that was charged to the last control group
  std::vector<GroupReading> groups_at_first{};  ///< each at the first sample that has it
  std::optional<CommandTraces> traced{};
  KernelMark mark{};  ///< of a command
  PauseCost pauses{};
  std::string refusal{};  ///< the reason why a process could not be paused, which ended the watch

  /// Whether the kernel saw more than the samples did, by which it is off by some tens of pages.
  bool peak_missed() const {
    const bool is_higher = !peak || mark.bytes > peak->bytes;
    return is_higher && mark.bytes > mark.seen_bytes + mark.seen_bytes / 50 + (256 << 10);
  }
};

/// Takes samples until the pace or the listener says that it is enough, or no process is left. `details`: samples name
/// their processes. `begin_ns` is time 0 of all samples.
WatchResult watch(ProcessSampler& sampler, const Pace& pace, std::int64_t begin_ns, bool details,
                  const Listener& listener, const std::function<void(const Sample&)>& take);

/// The traces of watched processes, of which the live bytes are added to samples, on the time axis that both have
/// (doc/design/watch.md, "One time axis"). Two errors remain: the time of an event is accurate to some microseconds,
/// and a sample is of some moment between its start and its end.
class WatchedTraces {
 public:
  using Complain = std::function<void(const std::string&)>;

  WatchedTraces(const WatchedTraces&) = delete;
  WatchedTraces& operator=(const WatchedTraces&) = delete;

  /// Waits for the collectors, and adds to each sample the bytes that were live in its middle. Traces are read one
  /// after the other, and only their live blocks are kept in memory. `begin_ns` is time 0 of the samples. A trace that
  /// cannot be read is complained of, and the others are read.
  CommandTraces add_live_bytes(std::vector<Sample>& samples, std::int64_t begin_ns, const Complain& complain);

 protected:
  explicit WatchedTraces(const TraceOptions& options);
  ~WatchedTraces() = default;

  /// The value of CMTTRACE_STATUS by which recorders report their traces to us.
  std::string status_setting() const { return files_.setting(); }
  /// Notes that this process was no longer recorded at some moment after its trace's last event.
  void lose_after_last_event(int pid) { lost_pid_ = pid; }

 private:
  std::vector<ProcessTrace> find_traces(std::int64_t begin_ns, const Complain& complain) const;
  std::optional<std::int64_t> collectors_cpu_ns() const;

  std::int64_t made_ns_;
  bool accepts_samples_;
  launch::TraceStatusFile files_;
  int lost_pid_ = 0;
};

/// Traces a watched command with libcmttrace.so.
class CommandTracer : public WatchedTraces {
 public:
  /// Throws as launch::tracing_environment().
  explicit CommandTracer(const TraceOptions& options);

  const std::vector<std::pair<std::string, std::string>>& environment() const { return environment_; }

 private:
  std::vector<std::pair<std::string, std::string>> environment_;
};

}  // namespace cmt::watch
