/// The options of cmtreplay, read from its command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cmtreplay/report/trims.h"
#include "cmtreplay/run/worker_process.h"
#include "cmtreplay/tune/program_run.h"
#include "cmtreplay/tune/search.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/limits.h"

namespace cmt::replay {

/// The cells of a task, counted from 1. There is none if `last` is 0.
struct TaskRange {
  std::size_t first = 0, last = 0;
};

/// The options of many traces (matrix_command.cpp).
struct MatrixChoice {
  bool is_asked = false;            ///< any other of these is given, or several traces, or a folder
  std::vector<std::string> traces;  ///< files and folders
  std::string suite;                ///< "quick", "full", or empty
  std::string results;              ///< the folder of cells; empty: none
  std::string scoreboard;           ///< the folder that is only shown; empty: none
  std::string against;              ///< the old build of a gate; empty: none
  std::string baseline;             ///< an earlier board of a gate; empty: none
  std::vector<command::Limit> limits;
  bool lists_tasks = false;
  TaskRange tasks = {};
};

/// The options of a search for settings (tune_command.cpp).
struct TuneChoice {
  bool is_asked = false;
  std::vector<Aim> aims = {};
  double budget_seconds = 0;
};

/// The options of the command line.
struct Options : ReplayOptions {
  std::vector<std::string> allocators;  ///< as given; libc by default
  std::string prefix;                   ///< of the names of the calls; empty: none
  bool new_trace = false;               ///< write one, to standard output or to `output`
  bool has_report_file = false;         ///< the standard output is a file of --output, for the report
  std::string output;                   ///< its path, with %a for the allocator's name; empty: standard output
  bool verify = false;
  std::uint64_t until = 0;  ///< a verification stops for a debugger before this event, from 1; 0: it does not
  std::string again;  ///< the words of a shell that follow `--alloc` to replay in the same way, each after a blank
  bool json = false;
  bool csv = false;
  std::string plot;  ///< a picture's file; empty: none

  std::vector<std::string> recordings;  ///< of --same-program: `file` in turn; empty: one trace

  std::string trim_at;      ///< as given; empty: no calls of malloc_trim are added
  TrimPoints trims;         ///< the same
  bool has_warned = false;  ///< the warnings of the trace were reported

  TraceOptions trace;
  MatrixChoice matrix;
  TuneChoice tune;
  ProgramCommand program;        ///< of --command; its command is empty: not given
  bool has_runs = false;         ///< --runs or --budget is given
  bool has_run_options = false;  ///< one of these, --suite, or another that changes how a trace is replayed
  bool force = false;            ///< replay even if memory is short
};

extern const char* const help_text;
extern const char* const help_all_text;
extern const std::vector<command::Option> known_options;

/// The path in `output` for an allocator.
std::string output_path(const std::string& output, const std::string& allocator);

/// Throws command::UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::replay
