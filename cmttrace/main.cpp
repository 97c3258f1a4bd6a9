// cmttrace: runs a command with the tracer loaded into it, and sums up the recording at the end.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "preload/protocol.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/launch.h"
#include "toolkit/command/output_path.h"
#include "toolkit/command/trace_status.h"
#include "toolkit/command/tracer.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::trace_launcher {
namespace {

using command::CommandLine;
using command::UsageError;
using Clock = std::chrono::steady_clock;

const char help_text[] =
    R"(Usage: cmttrace [OPTION]... [--] COMMAND [ARGUMENT]...
       cmttrace --recover=RINGS [-o OUT]

Runs a command with libcmttrace.so loaded into it, which records its calls of
malloc and free. At the end, a line on standard error sums up the recording.

  -o, --output=OUT  the trace's path, app.cmt: a file there is replaced; other
                    processes' traces are named app.PID.cmt. With %n, the
                    program's name, or %p, its process id, no file is replaced.
                    A name that ends in .cmt gets the compact form, any other
                    the text form. Default: %n.%p.cmt
  --follow=yes|no   record the command's children too. Default: yes
  --time[=STEP]     record when each call was made; with a STEP, from 10us on,
                    from a clock that the collector sets so often, where a
                    thread does not read its own: costs one thread nothing
  --usable          record each block's usable size (malloc_usable_size)
  --stacks[=N]      record the call stack of each allocation; with N, its
                    innermost N frames
  --stacks-of-frees
                    record those of frees too
  --touched=SIZE|auto|off
                    record which pages of blocks of SIZE and more the command
                    writes to, and when. auto: from 64K on while that takes at
                    most a 64th of its time; off: of none. Default: auto, but
                    off in a container or where else system calls are filtered
  --sample=TIME     record the resident memory at this interval: 10ms
  --paused          record nothing before cmt_resume() or the command "start"
  --control=FIFO    create a FIFO that takes commands: stop, start, flush,
                    mark LABEL
  --max-bytes=SIZE  end the trace, not the command, at this size: 100M
  --max-events=N    after this many events
  --max-time=TIME   after this time: 10s, 1.5min
  --rings=FILE      keep events that are not in the trace yet in FILE, for
                    --recover
  --recover=RINGS   write the trace of a command that ended together with its
                    collector, as in a power failure, from the FILE of --rings;
                    no command is run
  -h, --help        show this help
  --version         show the version

Exit status: the command's; 125 cmttrace or the recording failed, 126 the
command cannot be started, 127 it was not found. A signal that ends the command
ends cmttrace too.
)";

constexpr std::uint64_t stack_frames_max = 4096;  // unwind_frames_max of libcmttrace.so

struct Options {
  std::string output = "%n.%p.cmt";  ///< as CMTTRACE_OUT
  bool follow = true;                ///< record children, and the programs that they execute
  std::vector<std::pair<std::string, std::string>> environment;  ///< the tracer's variables
  std::vector<std::string> command;
  std::string recover;  ///< the file of rings to write a trace from, instead of running a command; empty: none
};

bool parse_follow(const std::string& text) {
  if (text != "yes" && text != "no") throw UsageError("--follow is yes or no, not '" + text + "'");
  return text == "yes";
}

/// An option that is passed on in a variable of the tracer (libcmttrace(1)).
struct PassedOn {
  std::string option;
  const char* variable;
  const char* value;                 ///< nullptr: the option's
  std::set<std::string> units = {};  ///< that the option's number may have; none: it takes any text
};

const std::set<std::string> duration{"s"}, step{"step"}, frames{"frames"}, touched{"touched"},
    byte_count{"", "K", "M", "G", "KiB", "MiB", "GiB"};

const std::vector<PassedOn> passed_on{
    {"time", "CMTTRACE_TIME", nullptr, step},
    {"usable", "CMTTRACE_USABLE", "1"},
    {"stacks", "CMTTRACE_STACK_FRAMES", nullptr, frames},
    {"stacks-of-frees", "CMTTRACE_STACKS_OF_FREES", "1"},
    {"paused", "CMTTRACE_START", "paused"},
    {"control", "CMTTRACE_CONTROL", nullptr},
    {"rings", "CMTTRACE_RINGS", nullptr},
    {"sample", "CMTTRACE_SAMPLE", nullptr, duration},
    {"touched", "CMTTRACE_TOUCHED", nullptr, touched},
    {"max-bytes", "CMTTRACE_MAX_BYTES", nullptr, byte_count},
    {"max-events", "CMTTRACE_MAX_EVENTS", nullptr, {""}},
    {"max-time", "CMTTRACE_MAX_TIME", nullptr, duration},
};

/// A size as the tracer's variables have it: "64K". 0: it is none.
std::uint64_t bytes_of(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  if (error != std::errc() || !byte_count.contains(unit)) return 0;
  const int shift = unit.empty() ? 0 : unit[0] == 'K' ? 10 : unit[0] == 'M' ? 20 : 30;
  return number > UINT64_MAX >> shift ? 0 : number << shift;
}

/// The tracer checks its variables too, but then the command runs already.
std::string value_for_tracer(const PassedOn& passed, const CommandLine& line) {
  if (passed.value != nullptr) return passed.value;
  const std::string value = line.value(passed.option, "");
  if (passed.units == touched) {
    if (value.empty() || value == "auto" || value == "off") return value.empty() ? "auto" : value;
    if (bytes_of(value) < block_page_bytes)
      throw UsageError("--touched: expected a size from 4K on, auto or off, not '" + value + "'");
    return value;
  }
  if (passed.units == frames) {
    if (value.empty()) return "";  // as if the variable were not set
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number == 0 || number > stack_frames_max)
      throw UsageError("--stacks: expected a number of frames from 1 to " + std::to_string(stack_frames_max) +
                       ", not '" + value + "'");
    return value;
  }
  if (passed.units == step) {
    if (value.empty()) return "1";
    const auto ns = line.parsed(passed.option, "", "a step such as 100us", [](const std::string& text) {
      const auto parsed = command::parse_duration(text, "");
      return parsed && *parsed >= time_step_ns_min ? parsed : std::nullopt;
    });
    return std::to_string(ns) + "ns";
  }
  if (passed.units == duration) {
    const char* const alone = passed.option == "sample" ? "" : "s";
    const auto parse = [alone](const std::string& text) { return command::parse_duration(text, alone); };
    return std::to_string(line.parsed(passed.option, "", "a time such as 10ms, 1.5s or 2h", parse)) + "ns";
  }
  const std::size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  const bool fits = passed.units.empty() || (digits != 0 && passed.units.contains(value.substr(digits)));
  if (value.empty() || !fits) throw UsageError("--" + passed.option + " cannot be '" + value + "'");
  return value;
}

bool takes_nothing_too(const PassedOn& passed) {
  return passed.units == step || passed.units == frames || passed.units == touched;
}

std::vector<command::Option> known_options() {
  using Takes = command::Option::Takes;
  std::vector<command::Option> options{
      {"follow", Takes::value}, {"output", Takes::value, 'o'}, {"recover", Takes::value}};
  for (const PassedOn& passed : passed_on)
    options.push_back({passed.option, passed.value != nullptr     ? Takes::nothing
                                      : takes_nothing_too(passed) ? Takes::value_or_nothing
                                                                  : Takes::value});
  return options;
}

/// Throws UsageError.
Options parse_options(const CommandLine& line) {
  Options options;
  options.output = line.value("output", options.output);
  if (options.output.empty()) throw UsageError("--output: a name is missing");
  if (std::count(options.output.begin(), options.output.end(), ',') >= outputs_max)
    throw UsageError("--output: " + std::to_string(outputs_max) + " paths at most");
  options.follow = parse_follow(line.value("follow", "yes"));
  for (const PassedOn& passed : passed_on) {
    if (line.has(passed.option)) options.environment.emplace_back(passed.variable, value_for_tracer(passed, line));
  }
  if (line.has("stacks") || line.has("stacks-of-frees")) options.environment.emplace_back("CMTTRACE_STACKS", "1");
  options.command = line.files();
  if (line.has("recover")) {
    if (!options.command.empty()) throw UsageError("--recover runs no command");
    options.recover = line.value("recover", "");
    options.output = line.value("output", "");
    return options;
  }
  if (options.command.empty()) throw UsageError("a command to record is missing");
  return options;
}

void say(const std::string& text) { command::complain("cmttrace", text); }

command::Launch launch_of(const Options& options, const std::string& output, const command::TraceStatusFile& traces) {
  command::Launch launch{.words = options.command, .output = {}, .error = {}, .environment = options.environment};
  for (auto& variable : command::tracing_environment(output, options.follow))
    launch.environment.push_back(std::move(variable));
  launch.environment.emplace_back("CMTTRACE_STATUS", traces.setting());
  launch.environment.emplace_back("CMTTRACE_OUT_OF", std::to_string(getpid()));
  return launch;
}

using output::counted;

/// "app.cmt", "2 traces, app.cmt and app.7.cmt", "79 traces, the largest app.cmt, app.7.cmt and app.9.cmt".
std::string name_files(const std::vector<command::RecordedFile>& files) {
  constexpr std::size_t named_max = 3;
  const std::size_t named = std::min(files.size(), named_max);
  std::string text = files.size() == 1 ? "" : counted(files.size(), "trace") + ", ";
  if (files.size() > named) text += "the largest ";
  for (std::size_t i = 0; i < named; ++i) text += (i == 0 ? "" : i + 1 < named ? ", " : " and ") + files[i].path;
  return text;
}

/// What is missing in the traces, and why.
std::vector<std::string> list_losses(const command::RecordedTraces& recorded) {
  std::vector<std::string> losses;
  if (recorded.repairs != 0) losses.push_back(counted(recorded.repairs, "event") + " lost or in doubt");
  std::uint64_t unseen = 0, bypasses = 0, stacks_unknown = 0, stacks_cut = 0;
  std::string bypass;
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> stopped;  // by reason: traces, and the last one's end
  for (const command::BegunTrace& trace : recorded.traces) {
    unseen += trace.unseen;
    stacks_unknown += trace.stacks_unknown;
    stacks_cut += trace.stacks_cut;
    bypasses += trace.bypasses;
    if (bypass.empty()) bypass = trace.bypass;
    if (!trace.stopped.empty()) stopped[trace.stopped] = {stopped[trace.stopped].first + 1, trace.recorded_ns};
  }
  if (unseen != 0) losses.push_back(counted(unseen, "block") + " freed whose allocation was not seen");
  if (bypasses != 0) {
    losses.push_back("calls by " + bypass + (bypasses > 1 ? " and " + counted(bypasses - 1, "other module") : "") +
                     " not seen (RTLD_DEEPBIND or dlmopen)");
  }
  if (stacks_unknown != 0) losses.push_back("the call stacks of " + counted(stacks_unknown, "event") + " not known");
  if (stacks_cut != 0)
    losses.push_back("the call stacks of " + counted(stacks_cut, "event") + " cut, as there are too many");
  for (const auto& [reason, end] : stopped) {
    const std::string by = reason == "fault" ? "an error that libcmttrace reported" : "--" + reason;
    losses.push_back(end.first == 1
                         ? "stopped by " + by + " in the first " + output::time_text(static_cast<double>(end.second))
                         : counted(end.first, "trace") + " stopped by " + by);
  }
  return losses;
}

std::string summary(const command::RecordedTraces& recorded, double seconds) {
  if (recorded.files.empty() && !recorded.encoding.empty()) return "the command has ended";
  if (recorded.files.empty()) return "nothing was recorded";
  std::string text = counted(recorded.events, "event") + " of " + counted(recorded.threads, "thread") + " in ";
  text += name_files(recorded.files);
  text += ": " + output::with_commas(recorded.bytes) + " bytes";
  if (recorded.events != 0) {
    text += ", " + output::fixed(static_cast<double>(recorded.bytes) / static_cast<double>(recorded.events), 3) +
            " an event";
  }
  text += "; " + output::time_text(seconds * 1e9) + "; ";
  std::uint64_t time_step_ns = 0;
  for (const command::BegunTrace& trace : recorded.traces) time_step_ns = std::max(time_step_ns, trace.time_step_ns);
  if (time_step_ns != 0) text += "times to within " + output::time_text(static_cast<double>(time_step_ns)) + "; ";
  std::vector<std::string> losses = list_losses(recorded);
  if (recorded.broken != 0) {
    losses.push_back(counted(recorded.broken, "trace") + " could not be written to the end" +
                     (recorded.error != 0 ? ": " + std::generic_category().message(recorded.error) : ""));
  }
  if (recorded.refused != 0) losses.push_back(counted(recorded.refused, "process") + " not recorded");
  if (losses.empty()) losses.push_back("nothing was lost");
  for (std::size_t i = 0; i < losses.size(); ++i) text += (i == 0 ? "" : "; ") + losses[i];
  const unsigned explained = recorded.broken + recorded.faulty;
  if (recorded.unfinished > explained) text += "; " + counted(recorded.unfinished - explained, "trace") + " not ended";
  return text;
}

bool has_failed(const command::RecordedTraces& recorded) {
  return (recorded.files.empty() && recorded.encoding.empty()) || recorded.unreadable != 0 || recorded.broken != 0 ||
         recorded.faulty != 0 || recorded.refused != 0;
}

/// Tells on the terminal how long the collectors of a command that has ended will go on.
class EncodingProgress {
 public:
  void show(const std::vector<command::BegunTrace>& traces) {
    std::uint64_t encoded = 0, waiting = 0;
    for (const command::BegunTrace& trace : traces) {
      if (trace.ended) continue;
      encoded += trace.encoded;
      waiting += trace.waiting;
    }
    if (waiting == 0) return view_->clear();
    const auto now = Clock::now();
    if (waiting > first_waiting_) {  // the first time, or of one more process
      first_waiting_ = waiting;
      first_ = now;
    }
    std::string line = "cmttrace: encoding: " + output::with_commas(encoded) + " of " +
                       output::with_commas(encoded + waiting) + " events";
    const double per_second =
        static_cast<double>(first_waiting_ - waiting) / std::chrono::duration<double>(now - first_).count();
    if (first_waiting_ != waiting)
      line += ", " + output::fixed(std::ceil(static_cast<double>(waiting) / per_second), 0) + " s left";
    view_->show({line});
  }
  bool due() const { return view_->due(); }
  void clear() { view_->clear(); }

 private:
  const std::unique_ptr<output::TerminalView> view_ = output::make_terminal_view(STDERR_FILENO, output::Beside::nobody);
  std::uint64_t first_waiting_ = 0;
  Clock::time_point first_;
};

/// Whether a path in CMTTRACE_OUT stands for one file.
bool is_fixed(const std::string& path) { return path.find("%n") == path.npos && path.find("%p") == path.npos; }

/// Refuses to replace a file that the command is or reads: -o was given the wrong word.
void check_distinct(const std::string& path, const std::vector<std::string>& command) {
  std::error_code error;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string file = i == 0 ? command::find_in_path(command[0]) : command[i];
    if (std::filesystem::equivalent(path, file, error))
      throw std::runtime_error("--output: " + path + " is a file of the command (the program was not started)");
  }
}

/// Throws std::system_error where the tracer cannot create a FIFO by this name, or use it.
void check_fifo(const std::string& path) {
  command::check_folder(path);
  if (is_fixed(path) && std::filesystem::exists(path) && !std::filesystem::is_fifo(path))
    throw std::system_error(EEXIST, std::generic_category(), path);
}

/// Finds out, before the command is started, whether its outputs can be written, and removes the traces in whose place
/// they come. Returns the paths that the tracer is to write to: behind symbolic links.
std::string prepare_outputs(const Options& options) {
  std::vector<std::string> paths;
  try {
    for (const auto& [variable, value] : options.environment) {
      if (variable == "CMTTRACE_CONTROL") check_fifo(value);
      if (variable == "CMTTRACE_RINGS") command::check_folder(value);
    }
    std::istringstream list(options.output);
    for (std::string path; std::getline(list, path, ',');) {
      if (!is_fixed(path)) {
        command::check_folder(path);
      } else if (!path.empty()) {
        path = command::follow_links(path);
        check_distinct(path, options.command);
      }
      paths.push_back(path);
    }
    for (const std::string& path : paths) {
      if (is_fixed(path) && !path.empty()) command::make_room(path);
    }
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string("cannot write ") + error.what() + " (the program was not started)");
  }
  std::string prepared;
  for (const std::string& path : paths) prepared += (prepared.empty() ? "" : ",") + path;
  return prepared;
}

/// Becomes the collector, which recovers the trace.
[[noreturn]] void recover(const Options& options) {
  std::vector<std::string> words{command::collector_path(), "--recover", options.recover};
  if (!options.output.empty()) words.push_back(options.output);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  throw std::system_error(errno, std::generic_category(), words[0]);
}

int run(const CommandLine& line) {
  const Options options = parse_options(line);
  if (!options.recover.empty()) recover(options);
  std::optional<command::TraceStatusFile> traces(std::in_place);
  // The old trace stays where there is no command.
  const std::string file = command::find_in_path(options.command[0]);
  std::error_code ignored;
  const bool is_there = std::filesystem::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0;
  const command::Launch launch = launch_of(options, is_there ? prepare_outputs(options) : options.output, *traces);
  if (const std::string why = command::why_not_recordable(options.command[0]); !why.empty()) say(why);
  try {
    const auto begin = Clock::now();
    command::RunningCommand launched(launch);
    const command::Ended ended = launched.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    EncodingProgress progress;
    const auto recorded = command::wait_for_traces(*traces, say, [&](int milliseconds) {
      if (progress.due()) progress.show(traces->begun());
      pollfd signals{launched.fd(), POLLIN, 0};
      return poll(&signals, 1, milliseconds) > 0 && command::asks_to_end(launched.handle().signal);
    });
    progress.clear();
    say(summary(recorded, seconds));
    for (const std::string& path : recorded.encoding)
      say(path + " is not complete yet: the collector goes on writing it, and cmt's tools wait for that");
    traces.reset();  // exit_like() does not return
    if (has_failed(recorded) && ended.status == 0 && ended.signal == 0) return command::status_failed;
    command::exit_like(ended);
  } catch (const command::LaunchError& error) {
    say(error.what());
    return error.status;
  }
}

}  // namespace
}  // namespace cmt::trace_launcher

int main(int argc, char** argv) {
  using namespace cmt::trace_launcher;
  return cmt::command::run(argc, argv,
                           {"cmttrace", CMT_VERSION, help_text, known_options(), run, CommandLine::Operands::command});
}
