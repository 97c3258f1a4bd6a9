// Words the lines at the end of a recording from the status files of the collectors.
#include "cmttrace/summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"

namespace cmt::trace_launcher {
namespace {

using output::counted;

/// Names a trace, with its program if the file's name does not begin with it: "app.7.cmt (sed)".
std::string name_file(const launch::RecordedFile& file) {
  const std::string name = std::filesystem::path(file.path).filename();
  return file.program.empty() || name.starts_with(file.program + ".") ? file.path
                                                                      : file.path + " (" + file.program + ")";
}

/// "app.cmt: 45 allocations by 1 thread, peak 3.20 MiB, 1.10 MiB live at the end; pools: 9 blocks allocated". A
/// text has no totals.
std::string figures_of(const launch::RecordedFile& file, bool is_alone) {
  const std::string name = is_alone ? file.path : name_file(file), by = counted(file.threads, "thread");
  if (!file.totals) return name + ": " + counted(file.events, "event") + " of " + by;
  const std::string live = file.breaks_off ? " live where it breaks off" : " live at the end";
  if (file.is_sampled)
    return name + ": " + counted(file.totals->allocations, "sample") + " by " + by + ", " +
           output::with_commas(file.totals->end_live_blocks) + " of them" + live;
  return name + ": " + counted(file.totals->allocations, "allocation") + " by " + by + ", peak " +
         output::bytes_text(file.totals->peak_live_bytes) + ", " + output::bytes_text(file.totals->end_live_bytes) +
         live + (file.pool_blocks == 0 ? "" : "; pools: " + counted(file.pool_blocks, "block") + " allocated");
}

/// "2,852 lines of Python named; ", over all traces. Empty: no program was one of Python.
std::string interpreter_lines_of(const launch::RecordedTraces& recorded) {
  std::uint64_t named = 0;
  for (const launch::BegunTrace& trace : recorded.traces) named += trace.lines_named;
  return named == 0 ? std::string() : counted(named, "line") + " of Python named; ";
}

std::string losses_of(const launch::RecordedTraces& recorded) {
  std::vector<std::string> losses = launch::list_losses(recorded);
  if (losses.empty()) losses.push_back("nothing was lost");
  std::string text;
  for (std::size_t i = 0; i < losses.size(); ++i) text += (i == 0 ? "" : "; ") + losses[i];
  const unsigned explained = recorded.broken + recorded.faulty;
  if (recorded.unfinished > explained) text += "; " + counted(recorded.unfinished - explained, "trace") + " not ended";
  return text;
}

/// "2 more traces: app.7.cmt (sed) and app.9.cmt (sh); 99 short processes with 23,000 calls left out (...)". Empty:
/// there is one trace.
std::string others_of(const launch::RecordedTraces& recorded, const RecordingEnd& recording) {
  constexpr std::size_t named_max = 3;
  const std::size_t others = recorded.files.size() - 1, named = std::min(others, named_max);
  std::string text;
  if (others != 0) {
    text = counted(others, "more trace") + ": ";
    for (std::size_t i = 0; i < named; ++i)
      text += (i == 0 ? "" : i + 1 < others ? ", " : " and ") + name_file(recorded.files[i + 1]);
    if (named < others) text += " and " + counted(others - named, "other");
  }
  if (!recorded.left_out.empty()) {
    std::uint64_t events = 0;
    for (const launch::RecordedFile& file : recorded.left_out) events += file.events;
    text += (text.empty() ? "" : "; ") + counted(recorded.left_out.size(), "short process") + " with " +
            counted(events, "event") + " left out (--follow=yes keeps them)";
  }
  return text.empty() || recording.list.empty() ? text : text + "; " + recording.list + " lists all";
}

std::string details_of(const launch::RecordedTraces& recorded) {
  std::string text = counted(recorded.events, "event") + " in " + counted(recorded.bytes, "byte");
  if (recorded.events != 0) {
    text += ", " + output::fixed(static_cast<double>(recorded.bytes) / static_cast<double>(recorded.events), 3) +
            " an event";
  }
  std::uint64_t time_step_ns = 0;
  for (const launch::BegunTrace& trace : recorded.traces) time_step_ns = std::max(time_step_ns, trace.time_step_ns);
  if (time_step_ns != 0) text += "; times to within " + output::time_text(static_cast<double>(time_step_ns));
  return text;
}

/// A program that compiles functions while it runs, and how it lists their names in /tmp/perf-PID.map.
struct RuntimeCompiler {
  std::string_view program, functions, advice;
};
constexpr std::string_view javascript = "JavaScript functions",
                           node_advice =
                               "set NODE_OPTIONS='--perf-basic-prof-only-functions --interpreted-frames-native-stack'";
constexpr RuntimeCompiler runtime_compilers[] = {
    {"node", javascript, node_advice},
    {"nodejs", javascript, node_advice},
    {"java", "Java methods",
     "with Java 17 or later, set JAVA_TOOL_OPTIONS='-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
     "-XX:+DumpPerfMapAtExit'; before, load perf-map-agent"},
};

/// Returns the line about the methods of a Java process that still runs; empty if it has ended.
std::string names_of_running_java(int process, const std::string& list) {
  std::string command, environment;
  try {
    command = process::read_file(process::path_of(process, "cmdline"));  // empty of one that has ended
    environment = process::read_file(process::path_of(process, "environ"));
  } catch (const std::system_error&) {  // it has ended, or is another user's
  }
  if (command.empty()) return {};
  const std::string options = command + environment;
  if (options.find("+DumpPerfMapAtExit") != options.npos)
    return "names of Java methods will be in " + list + ", which the process writes at its end";
  return "Java methods have no names in call stacks until the process lists them: with Java 17 or later, jcmd " +
         std::to_string(process) + " Compiler.perfmap" +
         (options.find("+PreserveFramePointer") != options.npos
              ? ""
              : "; without -XX:+PreserveFramePointer, which it does not show, most methods are not in the stacks");
}

/// Whether call stacks have the names of functions that were compiled while the program ran, and what would give them.
/// Empty: there are no such functions.
std::string names_of(const launch::RecordedFile& file, const RecordingEnd& recording) {
  using State = NodeNames::State;
  const State node_names = recording.node_names;
  for (const RuntimeCompiler& compiler : runtime_compilers) {
    if (file.program != compiler.program) continue;
    const std::string list = "/tmp/perf-" + std::to_string(file.process) + ".map", functions(compiler.functions);
    std::error_code error;
    const auto bytes = std::filesystem::file_size(list, error);
    if (!error && bytes != 0)
      return "names of " + functions + " are in " + list + "; keep it for the reports" +
             (node_names == State::added
                  ? " (cmttrace has added " + std::string(node_name_options) + " to NODE_OPTIONS)"
                  : "");
    if (std::string later = functions == javascript ? "" : names_of_running_java(file.process, list); !later.empty())
      return later;
    const std::string lacking = functions + " will have no names in call stacks: ";
    if (functions != javascript || node_names == State::not_wanted) return lacking + std::string(compiler.advice);
    if (node_names == State::switched_off) return lacking + "the command or NODE_OPTIONS has --no-perf-basic-prof";
    if (node_names == State::snapshot)
      return lacking + "V8's snapshots do not go with " + std::string(node_name_options);
    if (node_names == State::refused) return lacking + "this node does not take " + node_name_options;
    return lacking + "node has not written " + list +
           (node_names == State::added ? ", though NODE_OPTIONS has " + std::string(node_name_options) : "");
  }
  return {};
}

/// A path as a word of a shell that no tool takes for an option, or for the standard input.
std::string path_word(const std::string& path) {
  return command::shell_word(path.starts_with('-') ? "./" + path : path);
}

/// The files that `STEM*.cmt` means to a shell, in order.
std::vector<std::string> matches_of(const std::string& stem) {
  const std::filesystem::path folder = std::filesystem::path(stem).parent_path();
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename(), path = folder / name;
    if (!name.starts_with('.') && path.starts_with(stem) && path.ends_with(".cmt")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The traces of a recording as words of a shell: a pattern that means no other file, or up to three names. Empty:
/// there are more, among other traces.
std::string words_of(const launch::RecordedTraces& recorded, const std::string& stem) {
  constexpr std::size_t named_max = 3;
  std::vector<std::string> paths;
  for (const launch::RecordedFile& file : recorded.files) paths.push_back(file.path);
  std::sort(paths.begin(), paths.end());
  const std::string folder = std::filesystem::path(stem).parent_path() / "";
  for (const std::string& prefix : {stem, folder}) {
    if (matches_of(prefix) != paths) continue;
    const auto has_dash = [](const std::string& path) { return path.starts_with('-'); };
    const bool needs_folder = prefix.empty() && std::any_of(paths.begin(), paths.end(), has_dash);
    return (needs_folder ? "./" : prefix.empty() ? "" : path_word(prefix)) + std::string("*.cmt");
  }
  std::string words;
  for (const std::string& path : paths) words += (words.empty() ? "" : " ") + path_word(path);
  return paths.size() <= named_max ? words : std::string();
}

/// The command that most people need next: with stacks a report over all traces, or over the largest where these cannot
/// be named briefly.
std::string next_command(const launch::RecordedTraces& recorded, const RecordingEnd& recording) {
  const launch::RecordedFile& first = recorded.files[0];
  std::string traces = path_word(first.path);
  if (first.is_sampled) return "lifetimes --by=function " + traces;
  if (!recording.has_stacks) return "cmtreplay " + traces;
  std::filesystem::path page = std::filesystem::path(first.path).replace_extension(".html");
  if (recorded.files.size() > 1 && recorded.unreadable == 0 && !recording.list.empty()) {
    const std::string stem = std::filesystem::path(recording.list).replace_extension().replace_extension();
    const std::string all = words_of(recorded, stem);
    if (!all.empty()) {
      traces = all;
      page = stem + ".html";
    }
  }
  return "cmtreport -o " + path_word(page.string()) + " " + traces;
}

}  // namespace

std::vector<std::string> summarise(const launch::RecordedTraces& recorded, const RecordingEnd& recording) {
  if (recorded.files.empty() && !recorded.encoding.empty()) return {"the command has ended"};
  if (recorded.files.empty()) {
    const std::string programs = launch::list_unrecorded(recorded);
    return {std::string(recorded.unreadable == 0 ? "nothing was recorded" : "no trace can be read") +
            (programs.empty() ? "" : "; " + programs)};
  }
  const launch::RecordedFile& first = recorded.files[0];
  std::string line =
      figures_of(first, recorded.files.size() == 1) + "; " + output::time_text(recording.seconds * 1e9) + "; ";
  if (const char* const name = recording.signal == 0 ? nullptr : ::sigabbrev_np(recording.signal))
    line +=
        (first.process == recording.process ? "ended by SIG" : "the command ended by SIG") + std::string(name) + "; ";
  std::vector<std::string> lines{line + interpreter_lines_of(recorded) + losses_of(recorded)};
  if (std::string others = others_of(recorded, recording); !others.empty()) lines.push_back(std::move(others));
  for (const launch::BegunTrace& trace : recorded.traces) {
    if (trace.profile_error != 0)
      lines.push_back(trace.path + (recording.has_trace ? ": its profile" : "") +
                      " cannot be written: " + std::generic_category().message(trace.profile_error));
  }
  if (recording.is_verbose) lines.push_back(details_of(recorded));
  if (!recording.has_trace) return lines;
  if (std::string names = recording.has_stacks ? names_of(first, recording) : ""; !names.empty())
    lines.push_back(std::move(names));
  if (recording.node_names == NodeNames::State::added && (recording.status != 0 || recording.signal != 0))
    lines.push_back("V8 refuses code caches and snapshots that were made without " + std::string(node_name_options) +
                    ": if the command failed by that, add --frames=none");
  if (first.events == 0 || !first.is_readable) return lines;
  lines.push_back("next: " + next_command(recorded, recording));
  return lines;
}

std::string Standstill::look(const std::vector<launch::BegunTrace>& traces, Clock::time_point now) {
  std::uint64_t progress = traces.size();
  const launch::BegunTrace* awaited = nullptr;
  for (const launch::BegunTrace& trace : traces) {
    progress += trace.encoded + (trace.ended ? 1 : 0);
    if (!trace.ended && awaited == nullptr) awaited = &trace;
  }
  if (progress != progress_ || !since_) {
    progress_ = progress;
    since_ = now;
    is_reported_ = false;
  }
  if (awaited == nullptr || is_reported_ || now - *since_ < patience) return {};
  is_reported_ = true;
  return awaited->path + ": its collector has made no progress for " + std::to_string(patience.count()) +
         " s. It may be stopped, or wait for a processor or a disk. Ctrl-C ends the wait";
}

void EncodingProgress::show(const std::vector<launch::BegunTrace>& traces) {
  const auto now = Standstill::Clock::now();
  shown_ = now;
  if (const std::string line = standstill_.look(traces, now); !line.empty()) {
    clear();
    say(line);
  }
  std::uint64_t encoded = 0, waiting = 0;
  for (const launch::BegunTrace& trace : traces) {
    if (trace.ended) continue;
    encoded += trace.encoded;
    waiting += trace.waiting;
  }
  if (waiting == 0) return view_->clear();
  if (waiting > first_waiting_) {  // the first time, or of one more process
    first_waiting_ = waiting;
    first_ = now;
  }
  std::string line =
      "cmttrace: encoding: " + output::with_commas(encoded) + " of " + output::counted(encoded + waiting, "event");
  const double per_second =
      static_cast<double>(first_waiting_ - waiting) / std::chrono::duration<double>(now - first_).count();
  if (first_waiting_ != waiting)
    line += ", " + output::fixed(std::ceil(static_cast<double>(waiting) / per_second), 0) + " s left";
  view_->show({line});
}

}  // namespace cmt::trace_launcher
