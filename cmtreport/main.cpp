// cmtreport: reads one or several traces, or two to compare, and writes a page, text or JSON. The report shows where
// the memory went and which functions asked for it.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/groups/options.h"
#include "analysis/stacks/selection.h"
#include "cmtreport/build/build.h"
#include "cmtreport/diff/build_diff.h"
#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/input/pages_json.h"
#include "cmtreport/input/read_json.h"
#include "cmtreport/input/read_recording.h"
#include "cmtreport/input/read_traces.h"
#include "cmtreport/page/report_page.h"
#include "cmtreport/report/screen.h"
#include "cmtreport/report/text.h"
#include "cmtreport/sampled/sampled_report.h"
#include "libcmt/text/format.h"
#include "toolkit/command/jobs.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/command/output_path.h"
#include "toolkit/files/output_file.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::report {
namespace {

using command::CommandLine;

constexpr const char* tool = "cmtreport";

const char help_text[] =
    R"(Usage: cmtreport [OPTION]... [FILE]...
       cmtreport --diff=BEFORE [OPTION]... AFTER

Reports where the memory of a program went and which functions asked for it. The
report has findings in words with numbers, memory over time, and the tree of
calls. Each FILE is a trace, text or .cmt, of one process; several are added up.
Without FILE, or if FILE is -, a trace is read from standard input. Functions
need a trace with call stacks. Logs of other tools are read too (man trace2cmt
lists them).

  -o, --output=FILE
                 write the report as a page that opens offline: memory over
                 time, and which functions allocated in a span that you choose.
                 A FILE in .txt or .json gets the text or the JSON; other
                 endings than these and .html or .htm are refused
  --text         print the findings, for people (the default without -o)
  --json         print the whole report as JSON

  --diff=BEFORE  report what changed from the trace BEFORE to the trace AFTER;
                 functions are matched by name, so that builds may differ

  --overhead=FILE
                 add the output of overhead --json for the same trace: the
                 pages, and the address space if it drew a plot
  --replay=FILE  add the output of cmtreplay --json for the same trace
  --watch=FILE   add the output of cmtwatch run --json or export --json for the
                 same run, or its recording itself

  --pages        report which functions hold the pages of the trace, which must
                 be one file: it is read again, which can take far longer

  --pool=NAME    report the blocks of a pool, which the program cuts from
                 malloc's or the system's memory, instead of malloc's: python
                 has CPython's objects

  --focus=REGEX  show only stacks with a matching function, file, line
                 (rows.py:41) or library
  --hide=REGEX   remove functions that match from the stacks
  --skip=REGEX   charge the callers of functions that match, too; may be given
                 more than once. Functions that only hand memory on (operator
                 new, xmalloc, PyMem_Malloc, g_malloc, insides of containers)
                 need no --skip
  --raw          charge these functions themselves, not their callers
  --native=fold|all|none
                 which native frames to show in stacks of Python or JavaScript:
                 fold (the default) leaves out those of the interpreter that
                 call these, and charges the innermost function of these, or the
                 extension module that it calls; all; or none
  --debug-dir=DIR
                 also look in DIR for separate debug files; may be given more
                 than once

  --jobs=N       use N threads at most; the default is as many as there are
                 processors for this process
  --strict       stop at the first defect of a trace; by default defects are
                 reported and counted
  --color=auto|always|never
                 print headings in bold. auto, the default: on a terminal,
                 unless NO_COLOR is set
  -h, --help     show this help
  -V, --version  show the version

Examples:
  cmtreport app.cmt
  cmtreport -o app.html app.cmt
  cmtreport --diff=before.cmt -o difference.html after.cmt

Exit status: 0 done, 1 could not, 2 wrong use.
)";

using analysis::pattern_option;

/// The reports of other tools about the same run.
struct OtherReports {
  std::optional<Json> pages;
  std::optional<Json> replay;
  std::optional<Json> watch;
};

OtherReports read_others(const CommandLine& line) {
  OtherReports others;
  if (line.has("overhead")) others.pages = read_overhead(line.value("overhead", ""));
  if (line.has("replay")) others.replay = read_replay(line.value("replay", ""));
  if (line.has("watch")) others.watch = read_watch(line.value("watch", ""));
  return others;
}

/// Throws FormatError if overhead's report is about another trace. The name "-" is standard input, which may be the
/// same.
void refuse_other_trace(const std::string& path, const Json& overhead, const Report& report) {
  const auto name = overhead.value("name", Json()), events = overhead.value("events", Json());
  const bool is_named_alike = report.name == "-" || name == "-" || name == report.name;
  if (is_named_alike && events == report.total.events) return;
  throw FormatError(path, "is about another trace: " + name.dump() + " of " + events.dump() + " events, not " +
                              report.name + " of " + std::to_string(report.total.events));
}

/// Throws FormatError if the replay is of none of the traces. They may have been renamed or converted since, so only
/// the number of events is compared.
void refuse_replay_of_other(const std::string& path, const Json& replay, const Report& report) {
  const Json trace = replay.value("trace", Json());
  const Json events = trace.is_object() ? trace.value("events", Json()) : Json();
  const auto is_replayed = [&events](const Process& process) { return events == process.events; };
  if (events.is_null() || std::any_of(report.processes.begin(), report.processes.end(), is_replayed)) return;
  throw FormatError(path, "is about another trace: of " + events.dump() + " events, not " + report.name + " of " +
                              std::to_string(report.total.events));
}

/// Whether a process was watched, as far as the output of cmtwatch shows. The JSON of `cmtwatch run --trace` lists the
/// traces that it took.
bool may_be_watched(const std::string& path, const Json& watch, std::uint64_t pid) {
  if (is_database(path)) return has_process(path, pid);
  const Json::json_pointer traces("/traced/traces");
  if (!watch.contains(traces) || !watch.at(traces).is_array()) return true;
  const Json& list = watch.at(traces);
  const auto is_of_process = [pid](const Json& trace) {
    return trace.is_object() && trace.value("pid", Json()) == pid;
  };
  return std::any_of(list.begin(), list.end(), is_of_process);
}

/// The wall clock at the first or last sample of cmtwatch run, in ns since 1970.
std::optional<std::int64_t> wall_ns_of(const Json& sample) {
  if (!sample.is_object() || !sample.contains("wall_ns") || !sample.at("wall_ns").is_number_integer()) return {};
  return sample.at("wall_ns").get<std::int64_t>();
}

/// Says so if the samples of cmtwatch run are all from before the traces' begin or from after their end.
void say_if_watched_at_other_time(const std::string& path, const Json& watch, const Report& report) {
  constexpr std::int64_t second = 1'000'000'000, slack = 2 * second;  // a trace states the second of its start
  const Json samples = watch.value("samples", Json());
  const std::optional<std::time_t> start = symbols::start_of(Header{.metadata = {{"start", report.total.start}}});
  if (!samples.is_array() || samples.empty() || !start) return;
  if (*start < 0 || *start > std::numeric_limits<std::int64_t>::max() / second / 4) return;
  const std::int64_t begin = *start * second;
  const std::optional<std::int64_t> first = wall_ns_of(samples.front()), last = wall_ns_of(samples.back());
  const auto say = [&](std::int64_t ns, const char* of_what) {
    command::complain(tool, path + ": was measured " + output::seconds_text(ns) + of_what + ": is it of another run?");
  };
  if (last && *last > 0 && *last < begin - slack) say(begin - *last, " before the trace began");
  if (!first || *first < 0 || report.duration_ns == unknown) return;
  std::uint64_t lasted = report.duration_ns;
  for (const Process& process : report.processes) {
    if (process.recorded_ns != unknown) lasted = std::max(lasted, process.recorded_ns);
  }
  const std::int64_t end = begin + static_cast<std::int64_t>(std::min<std::uint64_t>(lasted, begin));
  if (*first > end + slack) say(*first - end, " after the trace ended");
}

/// Says so if the output of cmtwatch has none of the traces' processes. In a container a process may have another id.
void say_if_watched_others(const std::string& path, const Json& watch, const Report& report) {
  const auto may_be_there = [&](const Process& process) {
    return !process.pid || may_be_watched(path, watch, *process.pid);
  };
  if (std::any_of(report.processes.begin(), report.processes.end(), may_be_there)) return;
  command::complain(tool, path + ": no recorded process has the id " + std::to_string(*report.processes.front().pid) +
                              " of the trace: is the recording of another run?");
}

void write_report(output::JsonWriter& json, const Report& report, const OtherReports& others) {
  json.begin_object();
  output::write_fields(json, report);
  if (others.pages) write_json(json, "pages", *others.pages);
  if (others.replay) write_json(json, "replay", *others.replay);
  if (others.watch) write_json(json, "watch", *others.watch);
  json.end_object();
}

/// Returns the names of all files that are read.
std::vector<std::string> inputs_of(const CommandLine& line, std::vector<std::string> paths) {
  for (const char* const option : {"overhead", "replay", "watch"}) {
    if (line.has(option)) paths.push_back(line.value(option, ""));
  }
  return paths;
}

/// The version, the time, and a command that makes the same report, without -o and the options that change nothing in
/// it.
Maker maker_of(const CommandLine& line) {
  std::string command = tool;
  for (const char* const option : {"pages", "raw", "strict"}) {
    if (line.has(option)) command += std::string(" --") + option;
  }
  for (const char* const option :
       {"diff", "overhead", "replay", "watch", "focus", "hide", "skip", "native", "debug-dir"}) {
    for (const std::string& value : line.values(option))
      command += " " + command::shell_word(std::string("--") + option + "=" + value);
  }
  for (const std::string& file : line.files()) command += " " + command::shell_word(file);
  const char* const given = getenv("SOURCE_DATE_EPOCH");
  const auto seconds = given != nullptr ? std::strtoull(given, nullptr, 10) : static_cast<std::uint64_t>(time(nullptr));
  return {CMT_VERSION, text::start_text(seconds), std::move(command)};
}

/// Refuses the name of a page that ends as if it had another form. A date or a number is no such ending.
void refuse_other_ending(const std::string& page) {
  std::string ending = std::filesystem::path(page).extension();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool is_form = ending.size() > 1 && ending.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1) == ending.npos;
  if (!is_form || ending == ".html" || ending == ".htm") return;
  throw command::UsageError("-o " + page +
                            ": a page ends in .html or .htm, or has no ending; the other forms are .txt and .json");
}

/// The outputs that the user asks for: a page, JSON, text.
class Outputs {
 public:
  /// Opens the page's file.
  Outputs(const CommandLine& line, const std::vector<std::string>& inputs)
      : path_(line.value("output", "")),
        has_json_(line.has("json")),
        has_text_(line.has("text")),
        jobs_(command::jobs_of(line)),
        maker_(maker_of(line)) {
    if (!line.has("output")) return;
    command::refuse_input_as_output(path_, inputs);
    refuse_other_ending(path_);
    page_.emplace(path_);
  }

  /// Writes those of sampled traces.
  void write_samples(const SampledReport& report) {
    if (page_) {
      process::write_all(page_->fd(), sampled_page(report, maker_), path_);
      page_->commit();
    }
    if (has_json_) command::print(report.json);
    if (needs_text()) command::print(report.text);
  }

  bool needs_json() const { return page_ || has_json_; }
  bool needs_text() const { return has_text_ || !needs_json(); }

  /// `write` writes a report. For a page alone its text is compressed while it is written.
  void write_json(const std::string& title, const std::function<void(output::JsonWriter&)>& write, PageOf page_of) {
    picture::PackedData packed(jobs_);
    std::string text;
    output::JsonWriter json;
    json.drain_to([&](std::string_view piece) {
      if (page_) packed.append(piece);
      if (has_json_) text += piece;
    });
    write(json);
    const std::string rest = json.take();
    if (page_) packed.append(rest);
    if (page_) {
      process::write_all(page_->fd(), to_page(title, std::move(packed), page_of, maker_), path_);
      page_->commit();
      if (!page_is_interactive())
        command::complain(
            tool, path_ +
                      ": does not draw: built without uPlot and flame-chart-js (run script/bootstrap in the sources, "
                      "and build again)");
    }
    if (has_json_) command::print(text + rest);
  }

 private:
  std::string path_;
  bool has_json_, has_text_;
  unsigned jobs_;
  Maker maker_;
  std::optional<files::OutputFile> page_;
};

void refuse_mixed_outputs(const CommandLine& line) {
  if (!line.has("output")) return;
  if (line.value("output", "").empty()) throw command::UsageError("--output needs the name of a file");
  if (line.value("output", "") == "-") {
    line.refuse_together("output", {"json"});
    line.refuse_together("output", {"text"});
  }
}

/// Whether a file is no pipe, or is missing. A missing file is reported when it is opened.
bool may_be_read_twice(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path, error) || command::can_be_read_again(path);
}

/// Refuses inputs that can be read only once where they are needed twice, and outputs that would be mixed.
void refuse_wrong_files(const CommandLine& line, const std::vector<std::string>& paths) {
  if (line.has("overhead") && paths.size() > 1) throw command::UsageError("--overhead is about one trace");
  if (line.has("pages") && (paths.size() > 1 || paths.front() == "-" || !may_be_read_twice(paths.front())))
    throw command::UsageError("--pages needs one trace that is a regular file: it is read more than once");
  auto from_standard_input = std::count(paths.begin(), paths.end(), "-");
  if (from_standard_input != 0 && paths.size() > 1)
    throw command::UsageError("of several traces none can be standard input");
  for (const char* option : {"overhead", "replay", "watch"}) from_standard_input += line.value(option, "") == "-";
  if (from_standard_input > 1) throw command::UsageError("standard input can be read only once");
  for (auto at = paths.begin(); at != paths.end(); ++at) {
    const std::string& path = *at;
    const auto is_same = [&path](const std::string& other) {
      std::error_code error;
      return std::filesystem::equivalent(path, other, error);
    };
    if (std::any_of(paths.begin(), at, is_same))
      command::complain(tool, path + ": is given more than once, and counts as often");
    if (paths.size() > 1 && !may_be_read_twice(path))
      throw command::UsageError(path + " is not a regular file: of several traces each is opened twice");
  }
  refuse_mixed_outputs(line);
}

/// The lines of a text: those of a terminal, if it goes to one.
std::size_t lines_of_output() { return isatty(STDOUT_FILENO) == 1 ? screen_lines : any_lines; }

/// cmtreport --diff.
int compare(const CommandLine& line, const ReadSettings& settings) {
  std::vector<std::string> paths = line.files();
  for (const char* const option : {"overhead", "replay", "watch", "pages"}) line.refuse_together("diff", {option});
  std::string before = line.value("diff", "");
  const bool is_operand = before.empty();  // cmt diff BEFORE AFTER passes an empty value
  if (paths.size() != (is_operand ? 2 : 1))
    throw command::UsageError(
        "--diff compares two traces: " + std::string(is_operand ? "BEFORE and AFTER" : "--diff=BEFORE and one AFTER") +
        ", not " + std::to_string(paths.size()));
  if (is_operand) {
    before = paths.front();
    paths.erase(paths.begin());
  }
  if (before == "-" && paths.front() == "-") throw command::UsageError("--diff needs two traces");
  refuse_mixed_outputs(line);
  Outputs outputs(line, {before, paths.front()});
  if (is_sampled(before) || is_sampled(paths.front())) {
    if (line.has("pool"))
      throw FormatError(paths.front(), "a sampled trace lacks most blocks, so --pool does not go with it");
    outputs.write_samples(compare_samples(before, paths.front(), settings));
    return 0;
  }
  const DiffReport report = compare_traces(before, paths.front(), settings);
  if (outputs.needs_json())
    outputs.write_json(
        report.name, [&](output::JsonWriter& json) { output::JsonFields(json).element(report); }, PageOf::difference);
  if (outputs.needs_text()) command::print(to_text(report, lines_of_output()));
  return 0;
}

/// Returns the finished pass over the pages, or nullopt if only the addresses are damaged.
std::optional<PagePass> pages_of(PageReading& reading) {
  try {
    return reading.finish();
  } catch (const FormatError& error) {
    command::complain(tool, std::string(error.what()) + " (who holds the pages is not known)");
    return std::nullopt;
  }
}

int run(const CommandLine& line) {
  line.refuse_together("text", {"json"});
  line.refuse_together("pool", {"pages", "overhead", "replay", "watch"});
  ReadSettings settings;
  settings.tool = tool;
  settings.strict = line.has("strict");
  settings.jobs = command::jobs_of(line);
  settings.functions = {.charges = analysis::charge_options(line),
                        .hidden = pattern_option(line, "hide"),
                        .native = analysis::native_option(line),
                        .focus = pattern_option(line, "focus")};
  settings.debug_directories = line.values("debug-dir");
  settings.pool = line.value("pool", "");
  if (line.has("diff")) return compare(line, settings);
  std::vector<std::string> paths = line.files();
  if (paths.empty()) paths.emplace_back("-");
  refuse_wrong_files(line, paths);
  Outputs outputs(line, inputs_of(line, paths));
  if (paths.size() == 1 && is_sampled(paths.front())) {
    for (const char* const option : {"pages", "overhead", "replay", "watch", "pool"}) {
      if (line.has(option))
        throw FormatError(paths.front(),
                          "a sampled trace lacks most blocks, so --" + std::string(option) + " does not go with it");
    }
    outputs.write_samples(estimate_callers(paths.front(), settings));
    return 0;
  }
  for (const std::string& path : paths) {
    if (paths.size() > 1 && is_sampled(path))
      throw FormatError(path, "a sampled trace cannot be added to others; give it alone");
  }
  OtherReports others = read_others(line);
  std::optional<PageReading> page_reading;
  if (line.has("pages")) page_reading.emplace(paths.front());
  Recording recording = read_traces(paths, settings);
  std::optional<PagePass> pass = page_reading ? pages_of(*page_reading) : std::nullopt;
  HeldPages pages;
  if (pass) pages.pass = &*pass;
  if (pass && recording.traces().front().process.has_stacks) {
    pages.holders = find_holders(*pass, pass->most_unused, recording);
    pages.pinning = find_holders(*pass, pass->most_separable, recording);
    name_blocks(pages, *pass, recording);
  }
  const Report report = build_report(recording, pages);
  if (!settings.functions.focus.empty() && report.nodes.parent.size() < 2)
    command::complain(tool, analysis::no_stack_matches);
  if (others.pages) refuse_other_trace(line.value("overhead", ""), *others.pages, report);
  if (others.replay) refuse_replay_of_other(line.value("replay", ""), *others.replay, report);
  if (others.watch) {
    say_if_watched_others(line.value("watch", ""), *others.watch, report);
    say_if_watched_at_other_time(line.value("watch", ""), *others.watch, report);
  }
  if (pages.pass != nullptr && outputs.needs_json()) others.pages = pages_json(pages, recording, others.pages);
  if (outputs.needs_json())
    outputs.write_json(
        report.processes.size() == 1 ? report.name : report.title,
        [&](output::JsonWriter& json) { write_report(json, report, others); }, PageOf::trace);
  if (outputs.needs_text()) command::print(to_text(report, lines_of_output()));
  return 0;
}

}  // namespace
}  // namespace cmt::report

int cmtreport_main(int argc, char** argv) {
  using namespace cmt::report;
  using Takes = cmt::command::Option::Takes;
  return cmt::command::run(argc, argv,
                           {tool,
                            CMT_VERSION,
                            help_text,
                            {{"output", Takes::value, 'o'},
                             {"diff", Takes::value},
                             {"overhead", Takes::value},
                             {"replay", Takes::value},
                             {"watch", Takes::value},
                             {"pool", Takes::value},
                             {"text"},
                             {"json"},
                             {"focus", Takes::value},
                             {"hide", Takes::value},
                             {"skip", Takes::values},
                             {"raw"},
                             {"native", Takes::value},
                             {"debug-dir", Takes::values},
                             {"pages"},
                             {"strict"},
                             {"color", Takes::value},
                             cmt::command::jobs_option},
                            run,
                            cmt::command::CommandLine::Operands::files,
                            cmt::command::Tool::Output::report});
}
