/// Runs a real program with an allocator preloaded, and measures time and memory of its processes.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "cmtreplay/run/allocator.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// A command to measure. A server does not end by itself: it gets a signal once its load has ended.
struct ProgramCommand {
  std::string command = {};
  std::string ready = {};         ///< succeeds once the server can be used; empty: at once
  std::string load = {};          ///< uses the server; empty: the command is no server
  int stop_signal = SIGTERM;      ///< for the server
  unsigned timeout_seconds = 60;  ///< for `ready`, and for the server's end
  unsigned limit_seconds = 0;     ///< for the command, or a server's load; 0: there is no limit

  bool is_server() const { return !load.empty(); }
};

/// One run. Memory is the sum over the command and its descendants; a page that several of them have counts for each.
struct ProgramRun {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t peak_bytes = 0, mean_bytes = 0;
  std::uint64_t peak_anonymous_bytes = 0, mean_anonymous_bytes = 0;
  std::uint64_t processes_at_peak = 0;  ///< when the anonymous memory has its peak
  std::string output_sha256 = {};
  std::string own_malloc =
      {};                  ///< the program's library of malloc, if the C library's was asked for; empty: none is known
  std::string fault = {};  ///< empty: there was none
  std::string message = {};  ///< with a fault, the last line of the standard error
};

template <class Visitor, output::DescribedAs<ProgramRun> R>
void describe(Visitor& field, R& run) {
  field("wall_ns", run.wall_ns, "from the start of the command to its end; of a server that of the load");
  field("cpu_ns", run.cpu_ns, "of the command and of the descendants that were waited for");
  field("minor_faults", run.minor_faults, "of the same processes");
  field("peak_resident_bytes", run.peak_bytes, "the most of all its processes at one time");
  field("mean_resident_bytes", run.mean_bytes, "over the time of the command");
  field("peak_anonymous_bytes", run.peak_anonymous_bytes, "the same, without pages of files");
  field("mean_anonymous_bytes", run.mean_anonymous_bytes, "the same");
  field("processes_at_peak", run.processes_at_peak, "that had the peak of anonymous memory");
  field("output_sha256", run.output_sha256, "of the standard output, of a server that of the load");
  field("own_malloc", run.own_malloc,
        "the library of the program's own whose malloc served in place of the C library's; empty: none is known");
  field("fault", run.fault, "why the run does not count, in words; empty: it does");
  field("message", run.message,
        "with a fault, the last line of the standard error, of a server and its load; else empty");
}

/// The words that start a command: its own if it has no characters that mean something to a shell, else those of sh.
/// The shell becomes the program if the command is one.
std::vector<std::string> command_words(const std::string& command);

/// Runs the command once. Samples the memory every 10 ms and at the end, by the kernel's high-water mark, and resets
/// the mark each time. So no peak is missed while one process has most of the memory. Throws std::system_error if the
/// command cannot be started, and Interrupted.
ProgramRun run_program(const ProgramCommand& command, const Allocator& allocator,
                       const command::Interrupts& interrupts);

}  // namespace cmt::replay
