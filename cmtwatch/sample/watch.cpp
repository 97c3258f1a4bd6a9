// Takes the samples of a watch, then reads the traces and adds the live bytes to each sample.
#include "cmtwatch/sample/watch.h"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>

#include "analysis/sampling/sample_counter.h"
#include "cmt/reader.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

std::int64_t middle_of(const Sample& sample) { return sample.begin_ns + (sample.end_ns - sample.begin_ns) / 2; }

/// A process in a sample, and the middle of that sample.
struct TimedReading {
  std::int64_t time_ns = 0;
  ProcessReading* process = nullptr;
};

/// For each trace the readings of its process from its start on, until the process executed another program, which has
/// a trace of its own. The first trace has those before its start too: then no block is live.
std::vector<std::vector<TimedReading>> readings_by_trace(std::vector<Sample>& samples,
                                                         const std::vector<ProcessTrace>& traces) {
  std::vector<std::vector<TimedReading>> readings(traces.size());
  std::map<int, std::vector<std::size_t>> traces_of;
  for (std::size_t i = 0; i < traces.size(); ++i) traces_of[traces[i].pid].push_back(i);
  for (Sample& sample : samples) {
    for (ProcessReading& process : sample.by_process) {
      const auto own = traces_of.find(process.pid);
      if (own == traces_of.end()) continue;
      const auto begins_later = [&](std::size_t i) { return traces[i].begin_ns > middle_of(sample); };
      const auto later = std::find_if(own->second.begin() + 1, own->second.end(), begins_later);
      readings[*(later - 1)].push_back({middle_of(sample), &process});
    }
  }
  return readings;
}

/// The live bytes of a trace of all blocks.
class AllBlocks {
 public:
  void count(const Event& event) { account_.count(event); }
  Estimate live() const {
    const auto [bytes, blocks] = account_.live();
    return {.samples = blocks, .bytes = static_cast<double>(bytes), .blocks = static_cast<double>(blocks)};
  }
  std::uint64_t bytes_peak() const { return account_.bytes_peak(); }

 private:
  heap::LiveAccount account_;
};

/// The estimated live bytes of a sampled trace.
class SampledBlocks {
 public:
  SampledBlocks(std::uint64_t interval, command::Complaints& complaints)
      : counter_(analysis::By::thread, interval, {}, complaints) {}

  void count(const Event& event) {
    counter_.count_event(event);
    bytes_peak_ = std::max(bytes_peak_, counter_.live().bytes);
  }
  const Estimate& live() const { return counter_.live(); }
  std::uint64_t bytes_peak() const { return analysis::whole(bytes_peak_); }

 private:
  analysis::SampleCounter counter_;
  double bytes_peak_ = 0;
};

/// Reads a trace, and sets the live bytes in the readings of its process, which rise by time. `knows_end`: the process
/// was recorded to its end, or to the last sample.
template <class Account>
void add_live_bytes_of(ProcessTrace& trace, Reader& reader, Account& account, const std::vector<TimedReading>& readings,
                       bool knows_end) {
  auto next = readings.begin();
  const auto add_until = [&](std::int64_t now_ns) {
    for (; next != readings.end() && next->time_ns < now_ns; ++next) next->process->live = account.live();
  };
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    trace.events += events.size();
    for (const Event& event : events) {
      if (event.time_ns != unknown) add_until(trace.begin_ns + static_cast<std::int64_t>(event.time_ns));
      account.count(event);
    }
  }
  trace.live_bytes_peak = account.bytes_peak();
  trace.whole = reader.totals() || !reader.truncated();
  // A process may go on after its last event, and its blocks stay live. If the trace breaks off, this is not known.
  if (trace.whole && knows_end) add_until(std::numeric_limits<std::int64_t>::max());
}

void read_live_bytes(ProcessTrace& trace, const std::vector<TimedReading>& readings, bool knows_end,
                     bool accepts_samples, const WatchedTraces::Complain& complain) {
  Reader reader(trace.path, {.addresses = false, .usable = false});
  if (!accepts_samples) command::refuse_samples(trace.path, reader.header());
  if (reader.header().sampled() == 0) {
    AllBlocks account;
    return add_live_bytes_of(trace, reader, account, readings, knows_end);
  }
  reader.accept_samples();
  command::Complaints complaints(false, complain);
  complaints.set_place([&] { return trace.path; });
  SampledBlocks account(reader.header().sampled(), complaints);
  add_live_bytes_of(trace, reader, account, readings, knows_end);
  trace.sampling_interval = account.live().interval;
  complaints.say_count();
}

std::optional<std::int64_t> header_number(const Header& header, const char* key) {
  const auto text = header.find(key);
  std::int64_t number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return std::nullopt;
  return number;
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

/// Returns a pattern that names the same files after the program changes its directory. It is unchanged if the
/// directory contains a comma, which would separate two patterns.
std::string absolute(const std::string& pattern) {
  const std::string here = std::filesystem::current_path();
  if (pattern.starts_with('/') || here.find(',') != here.npos) return pattern;
  std::string folder;
  for (const char c : here) folder += c == '%' ? "%%" : std::string(1, c);
  return folder + "/" + pattern;
}

bool has_group(const std::vector<GroupReading>& groups, const std::string& path) {
  return std::any_of(groups.begin(), groups.end(), [&path](const auto& group) { return group.memory.path == path; });
}

/// A command may begin in our group and go to its own, which then counts, however small it is.
void note_groups(WatchResult& result, const Sample& sample) {
  for (const GroupReading& group : sample.groups) {
    if (!has_group(result.groups_at_first, group.memory.path)) result.groups_at_first.push_back(group);
  }
  const GroupReading* const group = sample.largest_group();
  if (!group) return;
  const GroupReading* const before = result.group_peak ? &result.group_peak->group : nullptr;
  if (!before || !has_group(sample.groups, before->memory.path) || group->memory.current > before->memory.current)
    result.group_peak = GroupAt{*group, sample.begin_ns};
}

bool sleep_until_change(int changes, int milliseconds) {
  pollfd ready{changes, POLLIN, 0};
  poll(&ready, 1, milliseconds);
  return false;
}

}  // namespace

WatchResult watch(ProcessSampler& sampler, const Pace& pace, std::int64_t begin_ns, bool details,
                  const Listener& listener, const std::function<void(const Sample&)>& take) {
  using Taken = SamplingLoop::Taken;
  WatchResult result;
  SamplingLoop loop(pace);
  const bool nobody_left = loop.run(SamplingLoop::First::at_once, {&listener, 1}, [&] {
    const std::int64_t begin = process::now_ns(), wall = process::clock_ns(CLOCK_REALTIME);
    Sample sample;
    try {
      sample = sampler.read(details);
    } catch (const PauseRefused& error) {
      result.refusal = error.what();
      return Taken::nobody_left;
    }
    const std::int64_t end = process::now_ns();
    if (sample.processes + sample.refused == 0) return Taken::nobody_left;
    sample.begin_ns = begin - begin_ns;
    sample.end_ns = end - begin_ns;
    sample.wall_ns = wall;
    assert(sample.begin_ns <= sample.end_ns);
    result.pauses.add(sample.paused_ns);
    if (sample.processes != 0 && (!result.peak || sample.bytes > result.peak->bytes)) result.peak = sample;
    note_groups(result, sample);
    take(sample);
    return Taken::sample;
  });
  static_cast<SamplingCost&>(result) = loop.cost();
  result.gone = nobody_left && result.refusal.empty();
  return result;
}

WatchedTraces::WatchedTraces(const TraceOptions& options)
    : made_ns_(process::now_ns()), accepts_samples_(options.samples()), files_(options.output) {}

CommandTracer::CommandTracer(const TraceOptions& options)
    : WatchedTraces(options), environment_(launch::tracing_environment(absolute(options.output), options.follow)) {
  environment_.emplace_back("CMTTRACE_TIME", "1");
  environment_.emplace_back("CMTTRACE_STATUS", status_setting());
  if (!options.samples()) return;
  environment_.emplace_back("CMTTRACE_SAMPLE_BYTES", options.sample_bytes);
  environment_.emplace_back("CMTTRACE_STACKS", "1");
}

CommandTraces WatchedTraces::add_live_bytes(std::vector<Sample>& samples, std::int64_t begin_ns,
                                            const Complain& complain) {
  CommandTraces traced;
  const launch::RecordedTraces recorded = launch::wait_for_traces(files_, complain, sleep_until_change);
  traced.repairs = recorded.repairs;
  traced.losses = launch::list_losses(recorded);
  traced.has_failed = launch::has_failed(recorded);
  traced.traces = find_traces(begin_ns, complain);
  const std::vector<std::vector<TimedReading>> readings = readings_by_trace(samples, traced.traces);
  for (std::size_t i = 0; i < traced.traces.size(); ++i) {
    try {
      read_live_bytes(traced.traces[i], readings[i], traced.traces[i].pid != lost_pid_, accepts_samples_, complain);
    } catch (const std::exception& error) {
      complain(error.what());
      traced.has_failed = true;
    }
  }
  for (Sample& sample : samples) sum_live(sample);
  traced.cpu_ns = collectors_cpu_ns();
  return traced;
}

std::vector<ProcessTrace> WatchedTraces::find_traces(std::int64_t begin_ns, const Complain& complain) const {
  std::vector<ProcessTrace> traces;
  for (const launch::BegunTrace& begun : files_.begun()) {
    const std::string& path = begun.path;
    try {
      const Reader reader(launch::open_own_trace(path), path, {.addresses = false, .usable = false});
      const auto start = header_number(reader.header(), "start_monotonic_ns");
      if (!start || *start < made_ns_ || *start > process::now_ns()) {
        complain(path + (start ? ": was recorded by another clock" : ": does not say when it began"));
        continue;
      }
      const auto program = reader.header().find("program");
      traces.push_back({.path = path,
                        .program = std::string(program.value_or("")),
                        .pid = static_cast<int>(header_number(reader.header(), "pid").value_or(0)),
                        .begin_ns = *start - begin_ns});
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  std::sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return traces;
}

/// Returns nullopt if a trace is not whole.
std::optional<std::int64_t> WatchedTraces::collectors_cpu_ns() const {
  std::int64_t sum = 0;
  for (const launch::BegunTrace& begun : files_.begun()) {
    if (!begun.ended) return std::nullopt;
    sum += begun.collector_cpu_ns;
  }
  return sum;
}

}  // namespace cmt::watch
