// cmttrace: runs a command with the tracer loaded into it, and sums up the recording at the end.

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cmttrace/attach_command.h"
#include "cmttrace/flight.h"
#include "cmttrace/node_names.h"
#include "cmttrace/options.h"
#include "cmttrace/short_processes.h"
#include "cmttrace/summary.h"
#include "preload/protocol.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/output_path.h"
#include "toolkit/launch/launch.h"
#include "toolkit/launch/shared_collector.h"
#include "toolkit/launch/trace_paths.h"
#include "toolkit/launch/trace_status.h"
#include "toolkit/launch/tracer.h"

namespace cmt::trace_launcher {
namespace {

using command::CommandLine;
using Clock = std::chrono::steady_clock;

const char help_text[] =
    R"(Usage: cmttrace [OPTION]... [--] COMMAND [ARGUMENT]...
       cmttrace --attach=PID [OPTION]...
       cmttrace --detach=PID
       cmttrace --recover=RINGS [-o OUT]

Runs a command with libcmttrace.so loaded into it, which records its calls of
malloc and free, with call stacks and times. At the end, lines on standard error
sum up the recording.

  -o, --output=OUT  the trace's path: app.cmt. An existing file is replaced;
                    traces of other processes are named app.PID.cmt. With %n,
                    the program's name, or %p, its process id, no file is
                    replaced. A name that ends in .cmt gets the compact form,
                    any other name the text form. Default: %n.%p.cmt
  --calls           record calls without call stacks and times, unless --stacks
                    or --time is given: at the least cost
  --follow=auto|yes|no
                    record the command's children too. auto: leave out the
                    traces of short ones, which have lived less than 1 s, have
                    made less than 10,000 allocations and have had less than
                    1 MiB. Default: auto
  --time[=STEP]     record when each call was made. STEP (10us or more): take
                    times from a clock that the collector updates every STEP.
                    In a program with one thread, allocations and frees then
                    get their times without reading a clock. Without STEP: the
                    exact time of each call. Without the option: 1ms
  --usable          record each block's usable size (malloc_usable_size)
  --stacks[=N]      record call stacks with --calls, too. N: only the innermost
                    N frames of each
  --stacks-of-frees
                    record the call stacks of frees too
  --frames=auto|none
                    auto: where a stack executes Python code, put its functions
                    and lines in place of the interpreter's loop. For node, add
                    options to NODE_OPTIONS that list its functions in
                    /tmp/perf-PID.map. none: machine code only. Default: auto
  --pool=KIND       record blocks of pools as well: python, heaptrack or own.
                    KIND may be several with commas between them. python: what
                    Python's own allocator serves (512 bytes and less); implies
                    --stacks. heaptrack: what programs report by heaptrack's
                    functions. own: what they report by those of cmttrace.h
  --touched[=SIZE|auto|off]
                    record when the command first writes to each page of a
                    block of SIZE or more. auto, or no value: blocks of 4K or
                    more, while a thread spends at most about 1/64 of its time
                    on it. off: no blocks. Default: auto, but off under a filter
                    of system calls, as in most containers
  --sample-bytes=SIZE
                    record a sample of the blocks: one for each SIZE bytes that
                    are asked for, on average, such as 512K. For services that
                    may not slow down. The tools then show estimates
  --sample=TIME     record the resident memory every TIME: 10ms
  --paused          start to record only at cmt_resume() or the command "start"
  --control=FIFO    create a FIFO that takes commands: stop, start, flush, keep,
                    profile, mark LABEL
  --keep=TIME|SIZE|TIME,SIZE
                    keep only the last events: those of at least TIME (10min),
                    in SIZE (1G), at most twice as much. They are written to
                    OUT at the end, and to app.kept.1.cmt, app.kept.2.cmt, ...
                    when cmttrace gets SIGUSR1 or --control the command "keep"
  --keep-at=N%|SIZE with --keep: write them also when the command's control
                    group, or one around it, has reached this share of its limit
                    of memory (90%), or the command's own this size (400M), and
                    again while it grows. The file is
                    replaced as a whole, so it outlives a kill of the container
  --pprof=FILE      write a profile for pprof to FILE at the end: app.pb.gz. %n
                    and %p as in OUT. While the command runs, app.0001.pb.gz,
                    app.0002.pb.gz, ... are written when cmttrace gets SIGUSR1
                    or --control gets the command "profile". Implies --stacks
  --pprof-every=TIME
                    write such a profile every TIME, too: 10s
  --pprof-files=N   keep the last N of these. Default: 60. With -o /dev/null
                    there are only profiles, and no trace
  --max-bytes=SIZE  end the trace, not the command, at this size: 100M
  --max-events=N    end the trace after N events
  --max-time=TIME   end the trace after this time: 10s, 1.5min
  --rings=FILE      keep in FILE the events that are not in the trace yet;
                    --recover reads it. The file takes 4 MiB of the disk, and
                    256 KiB a thread; it is shorter where there is less room
  --recover=RINGS   write the trace of an earlier command that ended together
                    with its collector, as in a power failure; run no command.
                    RINGS is the FILE of --rings
  --attach=PID      record a running process until Ctrl-C, then detach from it;
                    its children only with --follow=yes
  --duration=TIME   with --attach: detach after this time: 10s, 1.5min
  --force           with --attach: attach also if the process's filter of system
                    calls cannot be read
  --detach=PID      end the recording of a process that was attached to
  -v, --verbose     at the end, say also how large the traces are
  -h, --help        show this help
  -V, --version     show the version

Examples:
  cmttrace -o app.cmt -- app
  cmttrace --calls -o app.cmt -- app
  cmttrace --attach=4711 -o app.cmt

Exit status: the command's; 125 if cmttrace or the recording failed, 126 if the
command cannot be started, 127 if it was not found. A signal that ends the
command ends cmttrace too.
)";

launch::Launch launch_of(const Options& options, const std::string& output, const launch::TraceStatusFile& traces) {
  launch::Launch launch{.words = options.command, .output = {}, .error = {}, .environment = options.environment};
  if (launch::is_broken_by_tracer(options.command[0])) return launch;
  for (auto& variable : launch::tracing_environment(output, options.follow))
    launch.environment.push_back(std::move(variable));
  for (auto& [variable, value] : launch.environment) {
    if (variable == "LD_PRELOAD" && options.is_heaptrack) value = launch::with_pools_library(value);
    if (variable == "CMTTRACE_CONTROL" || variable == "CMTTRACE_RINGS" || variable == "CMTTRACE_PPROF")
      value = launch::absolute_template(value);
  }
  launch.environment.emplace_back("CMTTRACE_STATUS", traces.setting());
  launch.environment.emplace_back("CMTTRACE_OUT_OF", std::to_string(getpid()));
  return launch;
}

/// Whether processes of the command may hand over their recordings. With one of these settings, all would get
/// collectors of their own.
bool serves_short_processes(const launch::Launch& launch) {
  const auto needs_own = [](const auto& variable) {
    for (const char* const name : {"CMTTRACE_KEEP", "CMTTRACE_PPROF", "CMTTRACE_RINGS", "CMTTRACE_CONTROL",
                                   "CMTTRACE_SAMPLE", "CMTTRACE_MAX_TIME"}) {
      if (variable.first == name) return true;
    }
    return false;
  };
  const auto is_tracer = [](const auto& variable) { return variable.first == "LD_PRELOAD"; };
  return std::any_of(launch.environment.begin(), launch.environment.end(), is_tracer) &&
         std::none_of(launch.environment.begin(), launch.environment.end(), needs_own);
}

/// Whether a path in CMTTRACE_OUT names one file.
bool is_fixed(const std::string& path) { return path.find("%n") == path.npos && path.find("%p") == path.npos; }

/// Whether a descriptor leads to the regular file at a path.
bool is_file_of(int descriptor, const std::string& path) {
  struct stat named, open;
  return stat(path.c_str(), &named) == 0 && fstat(descriptor, &open) == 0 && S_ISREG(named.st_mode) &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/// Refuses to replace a file that is the command or an argument of it, where -o probably got the wrong word, or one to
/// which the command writes.
void check_distinct(const std::string& path, const std::vector<std::string>& command) {
  if (is_file_of(STDOUT_FILENO, path)) throw std::runtime_error(path + ": it is the command's standard output");
  if (is_file_of(STDERR_FILENO, path)) throw std::runtime_error(path + ": it is the command's standard error");
  std::error_code error;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string file = i == 0 ? launch::find_in_path(command[0]) : command[i];
    if (std::filesystem::equivalent(path, file, error))
      throw std::runtime_error(path + ": it is a file of the command");
  }
}

/// Throws if the tracer would refuse a path for its length.
void check_length(const std::string& path) {
  constexpr std::size_t limit = output_path_bytes / 2;
  if (launch::absolute_template(path).size() >= limit)
    throw std::runtime_error(std::filesystem::path(path).filename().string() + ": its path has " +
                             std::to_string(limit) + " bytes or more; give a shorter one");
}

/// Throws if the tracer cannot create a FIFO by this name, or use it.
void check_fifo(const std::string& path) {
  command::check_folder(path);
  if (is_fixed(path) && std::filesystem::exists(path) && !std::filesystem::is_fifo(path))
    throw std::runtime_error(path + ": commands come through a FIFO, and this is none");
}

/// Checks, before the command is started, whether its outputs can be written, and removes the traces that they replace.
/// Returns the paths for the tracer, with symbolic links resolved.
std::string prepare_outputs(const Options& options) {
  std::vector<std::string> paths;
  try {
    for (const auto& [variable, value] : options.environment) {
      if (variable == "CMTTRACE_CONTROL" || variable == "CMTTRACE_RINGS" || variable == "CMTTRACE_PPROF")
        check_length(value);
      if (variable == "CMTTRACE_CONTROL") check_fifo(value);
      if (variable == "CMTTRACE_RINGS" || variable == "CMTTRACE_PPROF") command::check_folder(value);
      if (variable != "CMTTRACE_PPROF" || !is_fixed(value)) continue;
      const std::string file = command::follow_links(value);
      check_distinct(file, options.command);
      command::make_room(file);
    }
    std::istringstream list(options.has_trace ? options.output : "");
    for (std::string path; std::getline(list, path, ',');) {
      if (!is_fixed(path)) {
        command::check_folder(path);
      } else if (!path.empty()) {
        path = command::follow_links(path);
        check_distinct(path, options.command);
        command::check_regular(path);
      }
      check_length(path);
      paths.push_back(path);
    }
    for (const std::string& path : paths) {
      if (is_fixed(path) && !path.empty()) command::make_room(path);
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("cannot write ") + error.what() + " (the program was not started)");
  }
  std::string prepared = options.has_trace ? "" : options.output;
  for (const std::string& path : paths) prepared += (prepared.empty() ? "" : ",") + path;
  return prepared;
}

/// Becomes the collector, which recovers the trace.
[[noreturn]] void recover(const Options& options) {
  std::vector<std::string> words{launch::collector_path(), "--recover", options.recover};
  if (!options.output.empty()) words.push_back(options.output);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  throw std::system_error(errno, std::generic_category(), words[0]);
}

/// Leaves out short processes, and lists all if there are several. Returns false if the list cannot be written.
bool list_processes(const Options& options, pid_t own, launch::RecordedTraces& recorded, RecordingEnd& recording) {
  if (options.leaves_out_short) leave_out_short(recorded, own);
  if (!options.has_trace || recorded.files.empty() || recorded.files.size() + recorded.left_out.size() == 1)
    return true;
  try {
    const std::string path = list_path(recorded, own);
    write_list(path, recorded);
    recording.list = path;
    return true;
  } catch (const std::system_error& error) {
    say(error.what());
    return false;
  }
}

int run(const CommandLine& line) {
  const Options options = parse_options(line);
  if (!options.recover.empty()) recover(options);
  if (options.attach != 0) return run_attach(options);
  if (options.detach != 0) return run_detach(options);
  // The old trace stays if the command does not exist.
  const std::string file = launch::find_in_path(options.command[0]);
  std::error_code ignored;
  const bool is_there = std::filesystem::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0;
  // A child in another folder gets the same paths.
  const std::string output = launch::absolute_templates(is_there ? prepare_outputs(options) : options.output);
  std::optional<launch::TraceStatusFile> traces(std::in_place, options.has_trace ? output : options.profiles,
                                                options.has_trace);
  launch::Launch launch = launch_of(options, output, *traces);
  const NodeNames node_names = is_there ? node_names_of(options, file) : NodeNames{};
  if (node_names.state == NodeNames::State::added) launch.environment.emplace_back("NODE_OPTIONS", node_names.options);
  std::optional<launch::SharedCollector> shared;
  if (serves_short_processes(launch) && !traces->folder().empty()) shared.emplace(traces->folder(), launch.environment);
  if (const std::string why = launch::why_not_recordable(options.command[0]); !why.empty()) say(why);
  try {
    std::optional<FlightFiles> kept;
    if (options.keeps || !options.profiles.empty()) kept.emplace(*traces);
    const auto begin = Clock::now();
    launch::RunningCommand launched(launch);
    const launch::Ended ended = kept ? kept->wait(launched) : launched.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    EncodingProgress progress;
    auto recorded = launch::wait_for_traces(*traces, say, [&](int changes, int milliseconds) {
      if (progress.due()) progress.show(traces->begun());
      pollfd ready[] = {{launched.fd(), POLLIN, 0}, {changes, POLLIN, 0}};
      poll(ready, std::size(ready), milliseconds);
      return ready[0].revents != 0 && launch::asks_to_end(launched.handle().signal);
    });
    progress.clear();
    if (kept) kept->look(false);  // written after the command's end
    if (const std::string_view why = launch::obstacle_of(options.command[0]); !why.empty())
      recorded.unrecorded.insert(recorded.unrecorded.begin(), {options.command[0], std::string(why), 1});
    RecordingEnd figures{.seconds = seconds,
                         .signal = ended.signal,
                         .status = ended.status,
                         .process = launched.pid(),
                         .has_stacks = options.has_stacks,
                         .has_trace = options.has_trace,
                         .is_verbose = options.verbose};
    figures.node_names = node_names.state;
    const bool is_listed = list_processes(options, launched.pid(), recorded, figures);
    for (const std::string& text : summarise(recorded, figures)) say(text);
    for (const std::string& path : recorded.encoding)
      say(path + " is not complete yet: the collector goes on writing it, and cmt's tools wait for that");
    shared.reset();  // exit_like() does not return
    traces.reset();
    if ((has_failed(recorded) || !is_listed) && ended.status == 0 && ended.signal == 0) return command::status_failed;
    launch::exit_like(ended);
  } catch (const launch::LaunchError& error) {
    say(error.what());
    return error.status;
  }
}

}  // namespace
}  // namespace cmt::trace_launcher

int cmttrace_main(int argc, char** argv) {
  using namespace cmt::trace_launcher;
  return cmt::command::run(argc, argv,
                           {"cmttrace", CMT_VERSION, help_text, known_options(), run, CommandLine::Operands::command});
}
