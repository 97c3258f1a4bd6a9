// Reads the options, and refuses those that do not go together.
#include "cmtreplay/options.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cmtreplay/board/gate.h"
#include "cmtreplay/run/allocator.h"
#include "toolkit/picture/picture.h"
#include "toolkit/process/system.h"

namespace cmt::replay {

using command::CommandLine;
using command::Option;
using command::UsageError;

const std::vector<Option> known_options{{"alloc", Option::Takes::values},
                                        {"new-trace", Option::Takes::nothing, 'v'},
                                        {"output", Option::Takes::value, 'o'},
                                        {"prefix", Option::Takes::value},
                                        {"verify"},
                                        {"until", Option::Takes::value},
                                        {"json"},
                                        {"csv"},
                                        {"plot", Option::Takes::value},
                                        {"runs", Option::Takes::value},
                                        {"budget", Option::Takes::value},
                                        {"seed", Option::Takes::value},
                                        {"order", Option::Takes::value},
                                        {"threads", Option::Takes::value},
                                        {"pace", Option::Takes::value},
                                        {"clock", Option::Takes::value},
                                        {"touch", Option::Takes::value},
                                        {"give-back", Option::Takes::value},
                                        {"pin", Option::Takes::value},
                                        {"huge-pages", Option::Takes::value},
                                        {"timeout", Option::Takes::value},
                                        {"force"},
                                        {"prepared"},
                                        {"stream"},
                                        {"same-program"},
                                        {"tune", Option::Takes::value_or_nothing},
                                        {"tune-budget", Option::Takes::value},
                                        {"trim-at", Option::Takes::value},
                                        {"command", Option::Takes::value},
                                        {"ready", Option::Takes::value},
                                        {"load", Option::Takes::value},
                                        {"stop", Option::Takes::value},
                                        {"results", Option::Takes::value},
                                        {"suite", Option::Takes::value_or_nothing},
                                        {"scoreboard", Option::Takes::value},
                                        {"against", Option::Takes::value},
                                        {"baseline", Option::Takes::value},
                                        {"fail-if", Option::Takes::value},
                                        {"tasks"},
                                        {"task", Option::Takes::value},
                                        {"color", Option::Takes::value},
                                        {"help-all"}};

namespace {

/// A span of time from a second to eleven days, in whole seconds, rounded up. Nothing for other text.
std::optional<unsigned> whole_seconds(const std::string& text) {
  constexpr std::int64_t second = 1'000'000'000, most = 1'000'000;
  const auto span = command::parse_duration(text);
  if (!span || *span < second || *span > most * second) return std::nullopt;
  return static_cast<unsigned>((*span + second - 1) / second);
}

/// The value of --pace: "real", or "x" and a number. 0 if it is not given.
double pace(const CommandLine& line) {
  if (!line.has("pace")) return 0;
  const std::string given = line.value("pace", "");
  if (given == "real") return 1;
  double factor = 0;
  const char* const end = given.data() + given.size();
  const auto [stop, error] = std::from_chars(given.data() + (given.starts_with("x") ? 1 : 0), end, factor);
  if (!given.starts_with("x") || error != std::errc() || stop != end || !(factor >= 1e-3 && factor <= 1e6))
    command::refuse_value("pace", "real or xN, N from 0.001 to 1000000", given);
  return factor;
}

/// The value of --clock. By default a replay with --pace reads the system's clock: its time is the program's anyway.
ClockRuns clock_runs(const CommandLine& line) {
  if (!line.has("clock")) return line.has("pace") ? ClockRuns::none : ClockRuns::memory;
  return line.word("clock", {"recorded", "system"}) == "recorded" ? ClockRuns::all : ClockRuns::none;
}

/// The value of --pin: "0", "0,2" or "4-7", as in taskset(1).
std::vector<int> cpus(const CommandLine& line) {
  std::vector<int> list;
  const std::string given = line.value("pin", "");
  const char* at = given.data();
  const char* const end = at + given.size();
  const auto number = [&] {
    int value = -1;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value >= CPU_SETSIZE)
      command::refuse_value("pin", "a list of CPUs such as 0,2-3", given);
    at = stop;
    return value;
  };
  while (line.has("pin")) {
    const int first = number();
    const int last = at != end && *at == '-' ? (++at, number()) : first;
    for (int cpu = first; cpu <= last; ++cpu) list.push_back(cpu);
    if (last < first) command::refuse_value("pin", "a list of CPUs such as 0,2-3", given);
    if (at == end) break;
    if (*at++ != ',') command::refuse_value("pin", "a list of CPUs such as 0,2-3", given);
  }
  return list;
}

void check_output(const Options& options) {
  const bool is_all = std::count(options.allocators.begin(), options.allocators.end(), "all") != 0;
  const bool are_several = is_all || options.allocators.size() > 1;
  if (options.output.empty() && options.new_trace && are_several) {
    throw UsageError("-v writes the new trace of one allocator, and " +
                     (is_all ? "several" : std::to_string(options.allocators.size())) +
                     " are given; -o with %a in its name writes one each");
  }
  const bool one_each = options.output.find("%a") != std::string::npos;
  if (!options.output.empty() && are_several && !one_each)
    throw UsageError("-o needs %a in its name where several allocators are given");
}

/// Checks the file of --plot. A board can be written as Markdown, too.
std::string board_file_fault(const std::string& path) {
  if (path.ends_with(".md") || picture::PictureFile::form_of(path)) return "";
  return "expected a name that ends in .svg, .html, .png, .pdf or .md, not " + path;
}

/// The value of --task: "3" or "3-7". Nothing for other text.
std::optional<TaskRange> task_range(const std::string& text) {
  TaskRange range;
  const char* const end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, range.first);
  if (error != std::errc() || range.first == 0) return std::nullopt;
  range.last = range.first;
  if (stop != end && *stop == '-') {
    const auto last = std::from_chars(stop + 1, end, range.last);
    if (last.ec != std::errc()) return std::nullopt;
    stop = last.ptr;
  }
  if (stop != end || range.last < range.first) return std::nullopt;
  return range;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// The allocators that all options --alloc name.
std::vector<std::string> named_allocators(const CommandLine& line) {
  std::vector<std::string> names;
  for (const std::string& value : line.values("alloc")) {
    for (std::string& name : split_allocator_names(value)) names.push_back(std::move(name));
  }
  return names;
}

/// Reads the options of the gate: what the allocators are compared with, and by how much they may be worse.
void read_gate(const CommandLine& line, MatrixChoice& matrix) {
  matrix.against = line.value("against", "");
  matrix.baseline = line.value("baseline", "");
  const bool is_gate = line.has("against") || line.has("baseline");
  if (!is_gate && line.has("fail-if")) throw UsageError("--fail-if needs --against or --baseline");
  if (!is_gate) return;
  if (matrix.against.empty() && matrix.baseline.empty()) throw UsageError("--against and --baseline need a name");
  line.refuse_together("against", {"baseline", "results", "scoreboard", "verify", "tasks", "task"});
  line.refuse_together("baseline", {"results", "scoreboard", "verify", "tasks", "task"});
  if (!line.has("alloc")) throw UsageError("--alloc names the build that is judged");
  const std::vector<std::string> allocators = named_allocators(line);
  if (std::count(allocators.begin(), allocators.end(), matrix.against) != 0)
    throw UsageError("--against and --alloc name the same file");
  matrix.limits = line.parsed("fail-if", "time+3%,peak+2%,fragmentation+1%",
                              "a list such as time+3%,peak+2%, of time, peak, mean and fragmentation",
                              [](const std::string& text) { return command::parse_limits(text, gate_figures); });
}

/// Reads --same-program, whose traces are one input.
void read_recordings(const CommandLine& line, Options& options) {
  if (!line.has("same-program")) return;
  line.refuse_together("same-program", {"results", "suite", "scoreboard", "tasks", "task", "against", "baseline",
                                        "verify", "new-trace", "output", "plot"});
  const std::vector<std::string>& files = options.recordings = line.files();
  if (files.size() < 2) throw UsageError("--same-program needs several recordings");
  if (std::count(files.begin(), files.end(), "-") != 0)
    throw UsageError("standard input cannot be one of several recordings");
  if (std::any_of(files.begin(), files.end(), is_folder)) throw UsageError("--same-program needs files, not folders");
}

/// Reads the options of many traces.
void read_matrix(const CommandLine& line, MatrixChoice& matrix) {
  for (const char* const option : {"results", "scoreboard"}) {
    if (line.has(option) && line.value(option, "").empty())
      throw UsageError("--" + std::string(option) + " needs a folder");
  }
  matrix.traces = line.files();
  matrix.results = line.value("results", "");
  matrix.scoreboard = line.value("scoreboard", "");
  if (line.has("suite")) matrix.suite = line.value("suite", "") == "" ? "full" : line.word("suite", {"quick", "full"});
  matrix.lists_tasks = line.has("tasks");
  if (line.has("task")) matrix.tasks = line.parsed("task", "", "a number from 1, or two as in 1-8", task_range);
  const std::vector<std::string>& traces = matrix.traces;
  matrix.is_asked = traces.size() > 1 || std::any_of(traces.begin(), traces.end(), is_folder);
  for (const char* const option : {"results", "suite", "scoreboard", "tasks", "task", "against", "baseline"}) {
    if (!line.has(option)) continue;
    matrix.is_asked = true;
    line.refuse_together(option, {"new-trace", "output"});
  }
  read_gate(line, matrix);
  if (!matrix.is_asked) return;
  line.refuse_together("scoreboard", {"results", "tasks", "task", "verify"});
  line.refuse_together("tasks", {"task", "json", "csv", "plot"});
  line.refuse_together("task", {"json", "csv", "plot"});
  if (matrix.scoreboard.empty() && matrix.suite.empty() && traces.empty())
    throw UsageError("expected traces, a folder of traces, or --suite");
  if (!matrix.suite.empty() && !traces.empty()) throw UsageError("--suite brings its own traces");
  if ((matrix.lists_tasks || matrix.tasks.last != 0) && matrix.results.empty())
    throw UsageError("--tasks and --task need --results=DIR");
  if (line.has("new-trace") || line.has("output"))
    throw UsageError("-v and -o write the new trace of one trace, and several are given");
  if (std::count(traces.begin(), traces.end(), "-") != 0)
    throw UsageError("standard input cannot be one of several traces");
}

/// Reads --tune, whose search decides how often each setting is run.
void read_tune(const CommandLine& line, Options& options) {
  TuneChoice& tune = options.tune;
  tune.is_asked = line.has("tune");
  if (!tune.is_asked && line.has("tune-budget")) throw UsageError("--tune-budget needs --tune");
  if (!tune.is_asked) return;
  line.refuse_together("tune", {"verify", "new-trace", "output", "plot", "same-program", "scoreboard", "against",
                                "baseline", "runs", "budget", "prefix"});
  const std::string aim = line.value("tune", "").empty() ? "both" : line.word("tune", {"both", "memory", "time"});
  if (aim != "time") tune.aims.push_back(Aim::memory);
  if (aim != "memory") tune.aims.push_back(Aim::time);
  if (aim == "both") tune.aims.push_back(Aim::both);
  tune.budget_seconds = line.parsed("tune-budget", "10min", "a time of at least 1s, such as 2min", whole_seconds);
  if (options.matrix.suite.empty() && options.matrix.traces.empty()) throw UsageError("--tune needs a trace in a file");
  if (std::count(options.matrix.traces.begin(), options.matrix.traces.end(), "-") != 0)
    throw UsageError("--tune reads a trace more than once, so it cannot be standard input");
  if (!line.has("alloc")) options.allocators = {"all"};
  for (const std::string& name : options.allocators) {
    if (!parse_allocator_name(name).settings.empty())
      throw UsageError("--tune searches the settings itself: give " + name + " without them");
    if (name == "null") throw UsageError("--tune needs memory, and null hands out none");
  }
}

/// A signal by its name or number: "TERM", "SIGTERM", "15".
std::optional<int> signal_number(const std::string& text) {
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  for (int number = 1; number < NSIG; ++number) {
    const char* const known = sigabbrev_np(number);
    if ((known && name == known) || text == std::to_string(number)) return number;
  }
  return std::nullopt;
}

/// Reads the real program that allocators are tried on.
void read_program(const CommandLine& line, Options& options) {
  ProgramCommand& program = options.program;
  for (const char* const option : {"ready", "load", "stop"}) {
    if (line.has(option) && !line.has("command")) throw UsageError(std::string("--") + option + " needs --command");
    if (line.has(option) && !line.has("load")) throw UsageError(std::string("--") + option + " needs --load");
  }
  if (!line.has("command")) return;
  line.refuse_together("command", {"verify", "new-trace", "output", "plot", "same-program", "scoreboard", "against",
                                   "baseline", "budget", "prefix", "tasks", "task", "suite"});
  if (!options.tune.is_asked) line.refuse_together("command", {"csv", "results"});
  program.command = line.value("command", "");
  program.ready = line.value("ready", "");
  program.load = line.value("load", "");
  if (command_words(program.command).empty()) throw UsageError("--command needs a command");
  if (line.has("load") && command_words(program.load).empty()) throw UsageError("--load needs a command");
  program.stop_signal = line.parsed("stop", "TERM", "the name of a signal, such as TERM", signal_number);
  if (std::count(options.allocators.begin(), options.allocators.end(), "null") != 0)
    throw UsageError("--command needs memory, and null hands out none");
  if (!options.tune.is_asked && options.matrix.traces.size() > 1)
    throw UsageError("--command takes one trace, that of the command");
}

/// Reads the allocators, and what to write about them.
void read_allocators(const CommandLine& line, Options& options) {
  options.allocators = named_allocators(line);
  if (options.allocators.empty()) options.allocators.emplace_back("libc");
  for (const std::string& name : options.allocators) {
    if (name.empty()) throw UsageError("--alloc needs a name");
  }
  options.prefix = line.value("prefix", "");
  options.output = line.value("output", "");
  options.has_report_file = !line.standard_output().empty();
  options.new_trace = line.has("new-trace") || line.has("output");
  options.verify = line.has("verify");
  options.json = line.has("json");
  options.csv = line.has("csv");
  options.plot = line.checked("plot", options.matrix.is_asked ? &board_file_fault : &picture::PictureFile::fault_of);
  line.refuse_together("json", {"csv"});
  if (!options.matrix.is_asked) line.refuse_together("verify", {"csv", "plot"});
  line.refuse_together("verify", {"runs", "budget", "new-trace", "output", "touch", "give-back"});
  options.until = line.number("until", 0, 1, UINT64_MAX);
  line.refuse_together("until", {"json"});
  if (line.has("until") && (!options.verify || options.allocators.size() != 1 || options.allocators[0] == "all"))
    throw UsageError("--until needs --verify and one allocator");
  if (line.has("until") && options.matrix.is_asked) throw UsageError("--until needs one trace");
  if (line.has("prefix") && options.prefix.empty()) throw UsageError("--prefix needs the beginning of a name");
  if (line.has("output") && options.output.empty()) throw UsageError("-o needs a file");
  if (options.verify && std::count(options.allocators.begin(), options.allocators.end(), "null") != 0)
    throw UsageError("--verify needs memory, and null hands out none");
  check_output(options);
}

/// Reads the places of further calls of malloc_trim: "end", "every 10s", or the label of a mark.
void read_trims(const CommandLine& line, Options& options) {
  if (!line.has("trim-at")) return;
  line.refuse_together("trim-at", {"verify", "new-trace", "output", "plot", "csv", "same-program", "tune", "command"});
  if (options.matrix.is_asked) throw UsageError("--trim-at takes one trace");
  const std::string given = options.trim_at = line.value("trim-at", "");
  constexpr std::string_view every = "every ";
  if (given.empty()) throw UsageError("--trim-at needs a place: end, the label of a mark, or 'every 10s'");
  options.trims.at_end = given == "end";
  if (given.starts_with(every)) {
    options.trims.every_ns = command::parse_duration(given.substr(every.size())).value_or(0);
    if (options.trims.every_ns <= 0) command::refuse_value("trim-at", "'every TIME', such as 'every 10s'", given);
  } else if (!options.trims.at_end) {
    options.trims.mark = given;
  }
}

/// The options of one replay that decide about its order, and the trace.
std::string words_again(const CommandLine& line, const std::string& file) {
  std::string words;
  for (const char* const name : {"order", "threads", "pace", "clock"}) {
    if (line.has(name)) words += " --" + std::string(name) + "=" + line.value(name, "");
  }
  if (line.has("force")) words += " --force";
  if (line.has("prefix")) words += " --prefix=" + command::shell_word(line.value("prefix", ""));
  return words + " " + (file == "-" ? "FILE" : command::shell_word(file));
}

}  // namespace

std::string output_path(const std::string& output, const std::string& allocator) {
  std::string path = output;
  for (auto at = path.find("%a"); at != path.npos; at = path.find("%a", at)) {
    const std::string name = file_name_of(allocator);
    path.replace(at, 2, name);
    at += name.size();
  }
  return path;
}

Options parse_options(const CommandLine& line) {
  Options options;
  read_recordings(line, options);
  if (options.recordings.empty()) read_matrix(line, options.matrix);
  read_allocators(line, options);
  read_tune(line, options);
  read_program(line, options);
  read_trims(line, options);
  if (!options.matrix.is_asked && options.recordings.empty()) options.file = line.file();
  options.has_runs = line.has("runs") || line.has("budget");
  for (const char* const option : {"runs", "budget", "suite", "seed", "order", "threads", "pace", "clock", "touch",
                                   "give-back", "pin", "huge-pages", "timeout", "prepared", "stream"})
    options.has_run_options = options.has_run_options || line.has(option);
  if (line.has("runs")) options.runs = static_cast<unsigned>(line.number("runs", 1, 1, 1000));
  options.budget_ns = std::uint64_t{1'000'000'000} * line.parsed("budget", options.new_trace ? "1s" : "10s",
                                                                 "a time of at least 1s, such as 2min", whole_seconds);
  line.refuse_together("runs", {"budget"});
  options.seed = static_cast<unsigned>(line.number("seed", 1, 0, 4'000'000'000));
  options.trace.strict = line.word("order", {"free", "strict"}) == "strict";
  options.trace.threads = line.word("threads", {"recorded", "1"}) == "recorded";
  options.force = line.has("force");
  options.touch = line.word("touch", {"page", "none", "first", "all"});
  options.counterparts = line.has("trim-at") || line.word("give-back", {"preloaded", "counterpart"}) == "counterpart";
  options.pace = pace(line);
  options.clock = options.tune.is_asked && !line.has("clock") && !line.has("pace") ? ClockRuns::all : clock_runs(line);
  options.trace.timed = options.pace > 0 || options.clock != ClockRuns::none;
  options.cpus = cpus(line);
  options.huge_pages_off = line.word("huge-pages", {"system", "off"}) == "off";
  options.timeout_seconds = line.parsed("timeout", "60s", "a time of at least 1s, such as 2min", whole_seconds);
  options.program.timeout_seconds = options.timeout_seconds;
  if (line.has("timeout")) options.program.limit_seconds = options.timeout_seconds;
  if (line.has("until")) options.timeout_seconds = 1'000'000;  // a person may think
  options.again = words_again(line, options.file);
  line.refuse_together("stream", {"prepared"});
  const std::uint64_t without_asking = line.has("stream") ? 0 : process::available_memory_bytes() / 2;
  options.trace.prepared_bytes_max = line.has("prepared") ? prepared_always_bytes : without_asking;
  return options;
}

}  // namespace cmt::replay
