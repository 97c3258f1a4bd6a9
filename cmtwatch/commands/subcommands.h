/// The subcommands of cmtwatch, and the options that several of them have. All parse functions throw UsageError.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cmtwatch/sample/sampling.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/command/command_line.h"
#include "toolkit/process/control_group.h"

namespace cmt::watch {

/// One subcommand of cmtwatch.
struct Subcommand {
  using Run = int (*)(const command::CommandLine&);

  const char* name;
  const char* summary;   ///< its line in `cmtwatch --help`
  std::string help;      ///< of `cmtwatch NAME --help`, up to its own options; those that it lists are parsed
  Run run = nullptr;     ///< if its operands are files or pids; returns the exit status
  Run launch = nullptr;  ///< if its operands are a command; if `run` is set too, a command follows "--"
  const char* exit_status = "0 done, 1 could not, 2 wrong use.";  ///< the end of its help
};

/// To add one, declare it here, add it to the list, and define it in this folder.
Subcommand run_subcommand();
Subcommand get_subcommand();
Subcommand explain_subcommand();
Subcommand wss_subcommand();
Subcommand record_subcommand();
Subcommand peak_subcommand();
Subcommand show_subcommand();
Subcommand play_subcommand();
Subcommand import_subcommand();
Subcommand export_subcommand();
Subcommand compare_subcommand();

/// In the order of `cmtwatch --help`.
inline constexpr Subcommand (*all_subcommands[])() = {
    run_subcommand,  get_subcommand,  explain_subcommand, wss_subcommand,    record_subcommand, peak_subcommand,
    show_subcommand, play_subcommand, import_subcommand,  export_subcommand, compare_subcommand};

/// A span of time above 0.
std::int64_t parse_time(const command::CommandLine& line, const std::string& name);

/// A number above `least`, at most `most`.
double parse_number(const command::CommandLine& line, const std::string& name, double least, double most);

/// --interval, --frequency, --max-cost, --count and --duration.
Pace parse_pace(const command::CommandLine& line, std::int64_t interval_ns);

/// A process's number.
int parse_pid(const std::string& text);

/// The one PID operand.
int parse_only_pid(const command::CommandLine& line);

/// The one operand of a subcommand that reads a recording.
std::string parse_recording(const command::CommandLine& line);

/// --plot: a picture's file, whose form is known by its ending; empty if none is asked for.
std::string parse_plot(const command::CommandLine& line);

/// --root, else PROCFS, else /proc.
std::string parse_root(const command::CommandLine& line);

/// --root and --groups.
process::GroupFolders parse_folders(const command::CommandLine& line);

/// --trace and --sample-bytes, else CMTTRACE_SAMPLE_BYTES, and --recursive.
TraceOptions parse_trace(const command::CommandLine& line);
/// For --trace of a process that runs.
void refuse_other_root(const std::string& root);

/// Parses the options that `run`, `get` and `wss` have in common.
void parse_sampling(const command::CommandLine& line, std::int64_t interval_ns, SamplingOptions& options);

/// Throws std::runtime_error, with the reason, if a process cannot be measured or, with `pause`, stopped.
void check_measurable(int pid, const std::string& root, bool pause);

/// Runs actions whose failure must not change how a launched command ends. It reports the first error and runs nothing
/// afterwards. A closed pipe is no error.
class Guard {
 public:
  /// `clear` erases our drawing before the error is reported.
  Guard(const char* name, std::function<void()> clear) : name_(name), clear_(std::move(clear)) {}

  void run(const std::function<void()>& action);
  bool failed() const { return failed_; }

 private:
  const char* name_;
  std::function<void()> clear_;
  bool is_stopped_ = false, failed_ = false;
};

}  // namespace cmt::watch
