#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/traced.h"
#include "toolkit/command/traces.h"

namespace cmt::watch {

/// A watched command, recorded from inside by libcmttrace.so at the same time. Both sides read the machine's monotonic
/// clock, and a trace's header says what it was at the trace's time 0: so nothing has to be fitted. What is left is the
/// tracer's own: an event's time is good to some microseconds; and a sample is of some moment between its begin and
/// end.
///
///     Inside inside("%n.%p.cmt", true);
///     Launched launched({.words = words, .environment = inside.environment(), …});
///     …  // samples that name their processes
///     const Traced traced = inside.join(samples, begin_ns, say);
class Inside {
 public:
  using Complain = std::function<void(const std::string&)>;

  /// `pattern` as CMTTRACE_OUT; `follow`: the command's children too. Throws as command::tracing_environment().
  Inside(const std::string& pattern, bool follow);
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  const std::vector<std::pair<std::string, std::string>>& environment() const { return environment_; }

  /// Waits for the collectors, and gives every sample what was live in the middle of it. The traces are read one after
  /// the other, and of each only the blocks that are live are kept. `begin_ns` is the samples' time 0. What is wrong
  /// with a trace is said, and the others are read.
  Traced join(std::vector<Sample>& samples, std::int64_t begin_ns, const Complain& complain);

 private:
  std::vector<InsideTrace> find_traces(std::int64_t begin_ns, const Complain& complain) const;
  std::optional<std::int64_t> collectors_cpu_ns() const;

  std::int64_t made_ns_;
  command::Traces files_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

/// The name that the kernel has for a collector, which is no part of what is watched.
constexpr const char* collector_name = "cmttrace-collec";

}  // namespace cmt::watch
