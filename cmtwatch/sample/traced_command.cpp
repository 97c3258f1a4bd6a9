#include "cmtwatch/sample/traced_command.h"

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
#include "cmtwatch/sample/sampling.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/command/tracer.h"

namespace cmt::watch {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t middle_of(const Sample& sample) { return sample.begin_ns + (sample.end_ns - sample.begin_ns) / 2; }

/// From the first sample that a process is in to behind the last. It need not be in all of them: while it executes
/// another program it has no memory for a moment.
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

/// Where the process is in it.
void give(Sample& sample, int pid, const Live& live) {
  for (ProcessReading& process : sample.by_process) {
    if (process.pid == pid) process.live = live;
  }
}

/// Reads a trace, and gives the samples of its process from `next` to `end` and before `until_ns` what was live.
void join_trace(InsideTrace& trace, std::vector<Sample>& samples, std::size_t next, std::size_t end,
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
        give(samples[next++], trace.pid, account.live());
      account.count(event);
    }
  }
  trace.live_bytes_peak = account.bytes_peak();
  trace.whole = reader.totals() || !reader.truncated();
  // After its last event a process may live on, and what it has stays live; of one whose trace breaks off that is not
  // known.
  while (trace.whole && is_due(never)) give(samples[next++], trace.pid, account.live());
}

/// When, on the monotonic clock, a trace's time 0 was.
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

void add_up(Sample& sample) {
  for (const ProcessReading& process : sample.by_process) {
    if (!process.live) {
      ++sample.untraced;
      continue;
    }
    if (!sample.live) sample.live.emplace();
    *sample.live += *process.live;
  }
}

/// A pattern that stands for the same files wherever the program goes. A comma would part two patterns.
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

Inside::Inside(const std::string& pattern, bool follow)
    : made_ns_(now_ns()), environment_(command::tracing_environment(absolute(pattern), follow)) {
  environment_.emplace_back("CMTTRACE_TIME", "1");
  environment_.emplace_back("CMTTRACE_STATUS", files_.setting());
}

Traced Inside::join(std::vector<Sample>& samples, std::int64_t begin_ns, const Complain& complain) {
  Traced traced;
  traced.repairs = command::wait_for_traces(files_, complain, sleep_ms).repairs;
  traced.traces = find_traces(begin_ns, complain);
  std::map<int, std::size_t> nexts;  // of a pid, the trace after this one: its program executed another
  std::vector<std::int64_t> ends(traced.traces.size(), never);
  for (std::size_t i = traced.traces.size(); i-- > 0;) {
    const auto [next, is_last] = nexts.insert({traced.traces[i].pid, i});
    if (!is_last) ends[i] = traced.traces[next->second].begin_ns;
    next->second = i;
  }
  const std::map<int, Presence> where = presences(samples);
  for (std::size_t i = 0; i < traced.traces.size(); ++i) {
    InsideTrace& trace = traced.traces[i];
    const auto found = where.find(trace.pid);
    const Presence there = found == where.end() ? Presence{} : found->second;
    std::size_t next = there.begin;
    for (; next < there.end && middle_of(samples[next]) < trace.begin_ns; ++next) {
      // Before its first event a process has asked for nothing.
      if (nexts.at(trace.pid) == i) give(samples[next], trace.pid, {});
    }
    try {
      join_trace(trace, samples, next, there.end, ends[i]);
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  for (Sample& sample : samples) add_up(sample);
  traced.cost_cpu_ns = collectors_cpu_ns();
  return traced;
}

std::vector<InsideTrace> Inside::find_traces(std::int64_t begin_ns, const Complain& complain) const {
  std::vector<InsideTrace> traces;
  for (const command::Begun& begun : files_.begun()) {
    const std::string& path = begun.path;
    try {
      const Reader reader(path, {.addresses = false, .usable = false});
      const auto start = start_of(reader.header());
      if (!start || *start < made_ns_ || *start > now_ns()) {
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

/// Unknown where a trace is not whole.
std::optional<std::int64_t> Inside::collectors_cpu_ns() const {
  std::int64_t sum = 0;
  for (const command::Begun& begun : files_.begun()) {
    if (!begun.ended) return std::nullopt;
    sum += begun.collector_cpu_ns;
  }
  return sum;
}

}  // namespace cmt::watch
