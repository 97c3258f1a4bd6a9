#include "cmtwatch/sample/watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>

#include "cmt/reader.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/command/tracer.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t middle_of(const Sample& sample) { return sample.begin_ns + (sample.end_ns - sample.begin_ns) / 2; }

/// The samples from the first that a process is in to the last. It need not be in all of them: it has no memory for a
/// moment while it executes another program.
struct Presence {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::map<int, Presence> presences(const std::vector<Sample>& samples) {
  std::map<int, Presence> presences;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const ProcessReading& process : samples[i].by_process)
      presences.insert({process.pid, {i, i}}).first->second.end = i + 1;
  }
  return presences;
}

/// Has no effect where the process is not in the sample.
void set_live(Sample& sample, int pid, const LiveTotals& live) {
  for (ProcessReading& process : sample.by_process) {
    if (process.pid == pid) process.live = live;
  }
}

/// Reads a trace, and sets the live bytes of its process in the samples from `next` to `end` that are before
/// `until_ns`.
void add_live_bytes_of(ProcessTrace& trace, std::vector<Sample>& samples, std::size_t next, std::size_t end,
                       std::int64_t until_ns) {
  Reader reader(trace.path, {.addresses = false, .usable = false});
  heap::LiveAccount account;
  const auto is_due = [&](std::int64_t now_ns) {
    return next < end && middle_of(samples[next]) < std::min(now_ns, until_ns);
  };
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    trace.events += events.size();
    for (const Event& event : events) {
      const bool timed = event.time_ns != unknown;
      while (timed && is_due(trace.begin_ns + static_cast<std::int64_t>(event.time_ns)))
        set_live(samples[next++], trace.pid, account.live());
      account.count(event);
    }
  }
  trace.live_bytes_peak = account.bytes_peak();
  trace.whole = reader.totals() || !reader.truncated();
  // A process may go on after its last event, and its blocks stay live. Where the trace breaks off that is not known.
  while (trace.whole && is_due(never)) set_live(samples[next++], trace.pid, account.live());
}

/// The monotonic clock at the trace's time 0.
std::optional<std::int64_t> start_of(const Header& header) {
  const auto text = header.find("start_monotonic_ns");
  std::int64_t start = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), start).ec != std::errc()) return std::nullopt;
  return start;
}

int pid_of(const Header& header) {
  const std::string_view text = header.find("pid").value_or("");
  int pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

void sum_live(Sample& sample) {
  for (const ProcessReading& process : sample.by_process) {
    if (!process.live) {
      ++sample.untraced;
      continue;
    }
    if (!sample.live) sample.live.emplace();
    *sample.live += *process.live;
  }
}

/// A pattern that names the same files when the program has changed its directory. Left as it is where the directory
/// has a comma, which would separate two patterns.
std::string absolute(const std::string& pattern) {
  const std::string here = std::filesystem::current_path();
  if (pattern.starts_with('/') || here.find(',') != here.npos) return pattern;
  std::string folder;
  for (const char c : here) folder += c == '%' ? "%%" : std::string(1, c);
  return folder + "/" + pattern;
}

bool sleep_ms(int milliseconds) {
  poll(nullptr, 0, milliseconds);
  return false;
}

}  // namespace

WatchResult watch(ProcessSampler& sampler, const Pace& pace, std::int64_t begin_ns, bool details,
                  const Listener& listener, const std::function<void(const Sample&)>& take) {
  using Taken = SamplingLoop::Taken;
  WatchResult result;
  SamplingLoop loop(pace);
  const bool nobody_left = loop.run(SamplingLoop::First::at_once, {&listener, 1}, [&]() -> Taken {
    const std::int64_t begin = process::now_ns();
    Sample sample;
    try {
      sample = sampler.read(details);
    } catch (const PauseRefused& error) {
      result.refusal = error.what();
      return {Taken::What::nobody_left};
    }
    const std::int64_t end = process::now_ns();
    if (sample.processes + sample.refused == 0) return {Taken::What::nobody_left};
    sample.begin_ns = begin - begin_ns;
    sample.end_ns = end - begin_ns;
    result.pauses.add(sample.paused_ns);
    if (sample.processes != 0 && (!result.peak || sample.bytes > result.peak->bytes)) result.peak = sample;
    take(sample);
    return {Taken::What::sample, end - begin};
  });
  static_cast<SamplingCost&>(result) = loop.cost();
  result.gone = nobody_left && result.refusal.empty();
  return result;
}

CommandTracer::CommandTracer(const std::string& pattern, bool follow)
    : made_ns_(process::now_ns()), environment_(command::tracing_environment(absolute(pattern), follow)) {
  environment_.emplace_back("CMTTRACE_TIME", "1");
  environment_.emplace_back("CMTTRACE_STATUS", files_.setting());
}

CommandTraces CommandTracer::add_live_bytes(std::vector<Sample>& samples, std::int64_t begin_ns,
                                            const Complain& complain) {
  CommandTraces traced;
  traced.repairs = command::wait_for_traces(files_, complain, sleep_ms).repairs;
  traced.traces = find_traces(begin_ns, complain);
  std::map<int, std::size_t> nexts;  // by pid, the next trace of the process: it executed another program
  std::vector<std::int64_t> ends(traced.traces.size(), never);
  for (std::size_t i = traced.traces.size(); i-- > 0;) {
    const auto [next, is_last] = nexts.insert({traced.traces[i].pid, i});
    if (!is_last) ends[i] = traced.traces[next->second].begin_ns;
    next->second = i;
  }
  const std::map<int, Presence> where = presences(samples);
  for (std::size_t i = 0; i < traced.traces.size(); ++i) {
    ProcessTrace& trace = traced.traces[i];
    const auto found = where.find(trace.pid);
    const Presence there = found == where.end() ? Presence{} : found->second;
    std::size_t next = there.begin;
    for (; next < there.end && middle_of(samples[next]) < trace.begin_ns; ++next) {
      // A process has no live blocks before its first event.
      if (nexts.at(trace.pid) == i) set_live(samples[next], trace.pid, {});
    }
    try {
      add_live_bytes_of(trace, samples, next, there.end, ends[i]);
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  for (Sample& sample : samples) sum_live(sample);
  traced.cpu_ns = collectors_cpu_ns();
  return traced;
}

std::vector<ProcessTrace> CommandTracer::find_traces(std::int64_t begin_ns, const Complain& complain) const {
  std::vector<ProcessTrace> traces;
  for (const command::BegunTrace& begun : files_.begun()) {
    const std::string& path = begun.path;
    try {
      const Reader reader(path, {.addresses = false, .usable = false});
      const auto start = start_of(reader.header());
      if (!start || *start < made_ns_ || *start > process::now_ns()) {
        complain(path + (start ? ": was recorded by another clock" : ": does not say when it began"));
        continue;
      }
      const auto program = reader.header().find("program");
      traces.push_back({.path = path,
                        .program = std::string(program.value_or("")),
                        .pid = pid_of(reader.header()),
                        .begin_ns = *start - begin_ns});
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  std::sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return traces;
}

/// Nothing where a trace is not whole.
std::optional<std::int64_t> CommandTracer::collectors_cpu_ns() const {
  std::int64_t sum = 0;
  for (const command::BegunTrace& begun : files_.begun()) {
    if (!begun.ended) return std::nullopt;
    sum += begun.collector_cpu_ns;
  }
  return sum;
}

}  // namespace cmt::watch
