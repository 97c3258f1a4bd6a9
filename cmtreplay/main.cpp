// cmtreplay: measures which allocator is best for a program, on a trace of that program.
//
// 1. Finds and tries every allocator, so that one that cannot be used is reported before anything runs.
// 2. Reads the trace and plans its operations (plan/).
// 3. Replays them, each time in a fresh process (run/ starts it, worker/ is its code).
// 4. Writes a report (report/).
//
// Many traces go another way: matrix_command.cpp. So do a search for settings, tune_command.cpp, and runs of a real
// program, program_command.cpp.

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "cmtreplay/matrix_command.h"
#include "cmtreplay/options.h"
#include "cmtreplay/plan/prepared_trace.h"
#include "cmtreplay/plan/trace_source.h"
#include "cmtreplay/program_command.h"
#include "cmtreplay/report/new_trace.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/report/same_program.h"
#include "cmtreplay/report/verification.h"
#include "cmtreplay/report/warnings.h"
#include "cmtreplay/tune/understood.h"
#include "cmtreplay/tune_command.h"
#include "libcmt/trace/files.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/command/output_path.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/style.h"
#include "toolkit/terminal/progress.h"
#include "toolkit/terminal/terminal.h"

namespace {

using namespace cmt::replay;

void print_message(const std::string& text) { cmt::command::complain("cmtreplay", text); }

void report_warnings(const std::string& of, const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) print_message(of + ": " + warning.text);
}

void report_death(const Allocator& allocator, const Death& death, std::uint64_t events) {
  print_message(allocator.name + ": died " + death.place(events) + ": " + death.text());
}

/// Returns false if the allocator died, or handed out nothing, so that its figures mean nothing.
bool report_problems(const AllocatorResult& result, const TracePlan& plan, const ReplayOptions& options) {
  if (result.death) report_death(result.allocator, *result.death, plan.facts.events);
  const std::uint64_t refused = refused_calls(result);
  const bool refused_all = refused != 0 && refused == plan.requests;
  if (refused_all)
    print_message(result.allocator.name + ": refused all " + cmt::output::counted(refused, "call") +
                  " for memory: nothing was measured");
  else if (refused != 0)
    print_message(result.allocator.name + ": refused " + cmt::output::counted(refused, "call"));
  report_warnings(result.allocator.name, allocator_warnings(result, plan.facts, options));
  return !result.death && !refused_all;
}

/// As a recorder names it.
std::string allocator_file(const Allocator& allocator) {
  return allocator.library.empty() ? allocator.name : std::filesystem::path(allocator.library).filename().string();
}

/// Returns false if the allocator died.
bool replay_new_trace(const ReplaySettings& settings, const Allocator& allocator, const std::string& path, int output) {
  const std::uint64_t count = settings.trace.plan().pointers;
  const SharedMemory memory("pointers", count * sizeof(void*));
  try {
    WorkerProcess worker(settings, allocator, {.pointers = &memory});
    worker.wait_until_ready();
    worker.run_to_end();
  } catch (const Death& death) {
    print_message(allocator.name + ": died in the run for the new trace: " + death.text());
    return false;
  }
  const MappedMemory mapping(memory, count * sizeof(void*));
  cmt::Reader reader = settings.trace.open(PreparedTrace::Stacks::yes);
  write_new_trace(reader, {mapping.words(), count}, allocator_file(allocator), {path, output});
  return true;
}

bool replay_new_traces(const ReplaySettings& settings, const std::vector<AllocatorResult>& results,
                       const Options& options, int output) {
  bool good = true;
  for (const AllocatorResult& result : results) {
    if (result.death) continue;
    const std::string path = output_path(options.output, result.allocator.name);
    try {
      good = replay_new_trace(settings, result.allocator, path, output) && good;
    } catch (const std::system_error& error) {  // writers know only a descriptor
      if (path.empty() || !std::string_view(error.what()).starts_with("writing: ")) throw;
      throw std::system_error(error.code(), path);
    }
  }
  return good;
}

/// The progress of runs on a terminal: "run 63 of about 180, 7 s left: jemalloc, memory", also while a run takes long.
struct RunProgress {
  cmt::terminal::LiveView& line;
  std::string step = {};
  RunsLeft left = {};  ///< at the begin of this run; no runs: a verification, of one run
  cmt::terminal::ShareDone since = {};

  void begin(const std::string& next_step, const RunsLeft& next_left) {
    step = next_step;
    left = next_left;
    since = {};
    wait(0);
  }

  void wait(double share) {
    if (!line.due() || step.empty()) return;
    if (left.total == 0) return line.show({step + ", " + since.text(share)});
    const std::string time = left.done == 0 ? "" : ", " + cmt::terminal::time_left_text(left.seconds - since.seconds());
    line.show(
        {"run " + std::to_string(left.done + 1) + " of about " + std::to_string(left.total) + time + ": " + step});
  }
};

/// The command that verifies an allocator in the same way.
std::string again_text(const Options& options, const Allocator& allocator) {
  const std::string name = program_invocation_name;
  return (name.find('/') == name.npos ? "cmtreplay" : cmt::command::shell_word(name)) +
         " --verify --alloc=" + cmt::command::shell_word(allocator.name) + options.again;
}

/// Becomes the worker, which stops in a debugger. A child feeds it and returns the exit status.
int verify_until(const ReplaySettings& settings, const Allocator& allocator, const Options& options) {
  const StopPoint stop = settings.trace.stop_point(options.until);
  const std::uint64_t events = settings.trace.plan().facts.events;
  print_message(allocator.name + ": stops " +
                (stop.event > events ? "after the last event"
                                     : "before event " + cmt::output::with_commas(stop.event) + " of " +
                                           cmt::output::with_commas(events)));
  report_warnings(allocator.name, emulation_warnings(allocator, settings.trace.plan().facts));
  const Verification verified = run_verification(settings, allocator, &stop);
  if (verified.death) return 0;  // the debugger, or SIGTRAP without one, has ended it
  cmt::command::print(verification_text(verified, events, again_text(options, allocator)));
  return verified.good() ? 0 : 1;
}

/// Returns 1 if a promise was broken, or if none could be checked.
int verify_all(const ReplaySettings& settings, const std::vector<Allocator>& allocators, const Options& options,
               RunProgress& progress) {
  const std::uint64_t events = settings.trace.plan().facts.events;
  std::vector<Verification> all;
  bool good = true;
  try {
    for (const Allocator& allocator : allocators) {
      progress.begin(allocator.name + ", verifying", {});
      all.push_back(run_verification(settings, allocator));
      progress.line.clear();
      if (!options.json)
        cmt::command::print(verification_text(all.back(), events, again_text(options, allocator)));
      else if (all.back().death)
        report_death(allocator, *all.back().death, events);
      report_warnings(allocator.name, emulation_warnings(allocator, settings.trace.plan().facts));
      good = good && all.back().good();
    }
  } catch (const Interrupted&) {
    print_message("interrupted; these are the results so far");
    good = false;
  }
  if (options.json) cmt::command::print(verification_json(all, options.file, events));
  return good ? 0 : 1;
}

/// Before anything runs, refuses files that could not be written or would replace the trace.
void check_outputs(const Options& options, const std::vector<Allocator>& allocators) {
  cmt::command::refuse_input_as_output(options.plot, {options.file});
  if (options.output.empty()) return;
  for (const Allocator& allocator : allocators) {
    const std::string path = output_path(options.output, allocator.name);
    cmt::command::refuse_input_as_output(path, {options.file});
    cmt::command::check_folder(path);
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) throw std::system_error(EISDIR, std::generic_category(), path);
  }
}

void write_picture(cmt::picture::PictureFile& file, const Report& report, const Options& options) {
  file.write(to_picture(report, options.plot.ends_with(".html")), json_text(report));
  if (!file.remark().empty()) print_message(options.plot + ": " + std::string(file.remark()));
}

std::string text_of(const Report& report, const Options& options) {
  if (options.json) return json_text(report);
  return options.csv ? csv_text(report) : report_text(report);
}

/// The allocators of a command, and what else all of its recordings share.
struct Session {
  std::vector<Allocator> allocators;
  Allocator null;
  std::optional<cmt::command::Interrupts>& interrupts;
  int output = STDOUT_FILENO;  ///< the standard output, also if the report has taken its place
  cmt::terminal::LiveView line{STDERR_FILENO};
};

/// Replays one trace, and calls `write` with the report. Before anything runs, `check` may throw. Returns the exit
/// status.
int replay(const Options& options, Session& session, const std::function<void(const Report&)>& write,
           const std::function<void(const PreparedTrace&)>& check = {}) {
  const std::vector<Allocator>& allocators = session.allocators;
  cmt::terminal::LiveView& line = session.line;
  TraceSource source(options.file);
  cmt::terminal::ShareDone done;
  const PreparedTrace trace = prepare(source, options.trace, [&](std::uint64_t read, std::uint64_t total) {
    if (!line.due()) return;
    const double share = static_cast<double>(read) / static_cast<double>(total);
    line.show({"reading, " + (total == 0 ? cmt::output::bytes_text(read) : done.text(share))});
  });
  line.clear();
  if (!source.first_defect().empty()) print_message(source.first_defect());
  if (!options.has_warned) report_warnings(source.name(), trace_warnings(trace, options.file));
  if (const cmt::replay::TraceFacts& facts = trace.plan().facts; facts.events == 0) {
    const char* const why = facts.truncated ? "breaks off before its first event" : "the trace is empty";
    print_message(source.name() + ": " + cmt::command::missing_end(options.file, false, why) +
                  ": there is nothing to replay");
  }
  if (options.pace > 0 && trace.plan().facts.recorded_ns == cmt::unknown)
    throw cmt::FormatError(source.name(), "has no recorded times (needed by --pace)");
  if (options.clock == ClockRuns::all && trace.plan().facts.recorded_ns == cmt::unknown)
    throw cmt::FormatError(source.name(), "has no recorded times (needed by --clock=recorded)");

  if (check) check(trace);
  session.interrupts.emplace();
  RunProgress progress{line};
  const ReplaySettings settings{.worker = find_worker(),
                                .trace = trace,
                                .interrupts = *session.interrupts,
                                .options = options,
                                .on_wait = [&](double share) { progress.wait(share); },
                                .before_message = [&] { line.clear(); }};
  const std::string fault = options.force ? "" : memory_fault(settings, allocators, options.verify);
  if (!fault.empty()) throw std::runtime_error(source.name() + ": " + fault);
  if (options.until != 0) return verify_until(settings, allocators.front(), options);
  if (options.verify) return verify_all(settings, allocators, options, progress);
  if (!options.has_warned) {
    report_warnings(source.name(), memory_warnings(trace, options));
    report_warnings(source.name(), crowd_warnings(trace, options));
  }
  const auto show = [&progress](const std::string& step, const RunsLeft& left) { progress.begin(step, left); };
  const Report report{.options = options, .trace = trace, .results = run_all(settings, allocators, session.null, show)};
  const ReplayResults& results = report.results;
  line.clear();
  write(report);
  bool good = !results.interrupted && !results.baseline.death;
  if (results.interrupted) print_message("interrupted; these are the results so far");
  for (const AllocatorResult& result : results.allocators) {
    good = report_problems(result, trace.plan(), options) && good;
  }
  if (options.new_trace && !results.interrupted)
    good = replay_new_traces(settings, results.allocators, options, session.output) && good;
  return good ? 0 : 1;
}

int replay_one(const Options& options, Session& session) {
  check_outputs(options, session.allocators);
  std::optional<cmt::picture::PictureFile> picture;
  if (!options.plot.empty()) picture.emplace(options.plot);
  const bool has_output = !options.new_trace || !options.output.empty() || options.has_report_file;
  std::FILE* const table = has_output ? stdout : stderr;
  if (!has_output) cmt::output::use_bold(false);  // --color is about standard output
  return replay(options, session, [&](const Report& report) {
    cmt::command::do_both([&] { cmt::command::print(text_of(report, options), table); },
                          [&] {
                            if (picture) write_picture(*picture, report, options);
                          });
  });
}

/// Replays each recording, and reports them as one.
int replay_recordings(const Options& given, Session& session) {
  Options options = given;
  SameProgram all;
  std::string csv, program;
  int status = 0;
  bool is_interrupted = false;
  for (const std::string& file : given.recordings) {
    options.file = file;
    const int failed = replay(options, session, [&](const Report& report) {
      is_interrupted = report.results.interrupted;
      if (is_interrupted) return;
      const std::string own(report.trace.open().header().find("program").value_or(""));
      if (program.empty()) program = own;
      if (!own.empty() && own != program) print_message(file + ": was recorded of " + own + ", not of " + program);
      append_csv(csv, file, csv_text(report));
      all.recordings.push_back(fields_of(report));
    });
    status = std::max(status, failed);
    if (is_interrupted) break;
  }
  if (all.recordings.empty()) return status;
  cmt::command::print(options.json ? json_text(all) : options.csv ? csv : table_text(all));
  return status;
}

/// Why a trace has no place for a call of malloc_trim.
std::string no_trim_text(const Options& options, const std::string& file) {
  if (!options.trims.mark.empty()) return file + ": has no mark '" + options.trims.mark + "' (--trim-at)";
  return file + ": has no place for --trim-at='" + options.trim_at + "': it is too short, or has no recorded times";
}

/// Replays the trace without and with calls of malloc_trim, from a copy of it.
int replay_with_trims(const Options& given, Session& session) {
  Options options = given;
  TrimReport trims{.file = cmt::command::input_name(given.file), .trim_at = given.trim_at};
  const Fd copy(cmt::open_temporary_file());
  bool is_interrupted = false;
  const int first = replay(
      options, session,
      [&](const Report& report) {
        is_interrupted = report.results.interrupted;
        add_figures(trims, report.results.allocators, &TrimmedFigure::without);
      },
      [&](const PreparedTrace& trace) {
        cmt::Reader reader = trace.open();
        trims.calls = copy_with_trims(reader, options.trims, trace.plan().facts.before_teardown_event, copy.get());
        if (trims.calls == 0) throw std::runtime_error(no_trim_text(given, trims.file));
      });
  if (is_interrupted) return 1;
  options.file = "/proc/self/fd/" + std::to_string(copy.get());
  options.has_warned = true;
  const int second = replay(options, session, [&](const Report& report) {
    is_interrupted = report.results.interrupted;
    add_figures(trims, report.results.allocators, &TrimmedFigure::with);
  });
  if (is_interrupted) return 1;
  cmt::command::print(options.json ? cmt::output::json_text(trims) : trims_text(trims));
  return std::max(first, second);
}

int run(const Options& options, std::optional<cmt::command::Interrupts>& interrupts, int output) {
  AllocatorFinder finder(find_worker(), options.prefix, options.timeout_seconds);
  Session session{.allocators = finder.find_all(options.allocators),
                  .null = finder.find("null"),
                  .interrupts = interrupts,
                  .output = output};
  for (const Allocator& allocator : session.allocators) {
    if (allocator.settings.empty()) continue;
    for (const std::string& text : ignored_lines(find_worker(), allocator, options.timeout_seconds))
      print_message(text);
  }
  if (!options.trim_at.empty()) return replay_with_trims(options, session);
  return options.recordings.empty() ? replay_one(options, session) : replay_recordings(options, session);
}

/// The end of --help. Empty if it is not asked for, or if the worker, which tries the libraries, is missing.
std::string installed_line(std::span<char*> arguments) {
  const auto asks = [](std::string_view word) { return word == "--help" || word == "-h"; };
  if (std::none_of(arguments.begin(), arguments.end(), asks)) return "";
  try {
    return "Installed here: " + AllocatorFinder(find_worker(), "", 10).installed_text() + "\n";
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace

int cmtreplay_main(int count, char** arguments) {
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);  // -o FILE may replace it, and -v writes there
  const std::string help = help_text + installed_line({arguments, arguments + count});
  return cmt::command::run(count, arguments,
                           {"cmtreplay", CMT_VERSION, help.c_str(), known_options,
                            [output](const cmt::command::CommandLine& line) {
                              if (line.has("help-all")) return cmt::command::print(help_all_text), 0;
                              std::optional<cmt::command::Interrupts> interrupts;
                              int status = 1;
                              try {
                                const Options options = parse_options(line);
                                // Processes that are started later inherit it.
                                if (options.huge_pages_off && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
                                  throw std::system_error(errno, std::generic_category(), "--huge-pages=off");
                                status = options.tune.is_asked              ? run_tune_command(options, interrupts)
                                         : !options.program.command.empty() ? run_program_command(options, interrupts)
                                         : options.matrix.is_asked          ? run_matrix_command(options, interrupts)
                                                                            : run(options, interrupts, output);
                              } catch (const Interrupted&) {
                                print_message("interrupted");
                              }
                              const int signal = interrupts ? interrupts->take() : 0;
                              return signal == 0 ? status : 128 + signal;
                            },
                            cmt::command::CommandLine::Operands::files, cmt::command::Tool::Output::report});
}
