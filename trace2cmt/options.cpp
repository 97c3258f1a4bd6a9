// The help text of trace2cmt, its options, and their checks.

#include "trace2cmt/options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "toolkit/command/jobs.h"

namespace cmt::trace2cmt {

using cmt::command::CommandLine;
using cmt::command::Option;
using cmt::command::UsageError;

const char* const help_text =
    "Usage: trace2cmt [OPTION]... [FILE]...\n"
    "Convert a trace of memory allocations. In: text, .cmt, legacy .cmt or the log\n"
    "of another tool, compressed or not. Out: text, .cmt, legacy .cmt, .rep, CSV,\n"
    "Parquet or heaptrack's. Several FILEs become one trace, one after the other.\n"
    "Without FILE, or if FILE is -, read standard input.\n"
    "\n"
    "      --from=FORMAT   the format of FILE: text, cmt, legacy, android, dtrace,\n"
    "                      heaptrack, kdump, logalloc, ltrace, mtrace, rep or\n"
    "                      valgrind (default: recognised by content)\n"
    "      --pid=N         read only process N of a log of several processes; without\n"
    "                      this, -o app.cmt writes app.N.cmt for each process N\n"
    "  -o, --output=OUT    write to OUT instead of standard output; the ending .txt,\n"
    "                      .trace, .csv, .parquet or .rep is the form without --to\n"
    "      --to=FORM       the form to write: cmt (the default), text, legacy (the\n"
    "                      .cmt of 2019), rep (of the malloc lab), csv, parquet or\n"
    "                      heaptrack (for heaptrack_print and heaptrack_gui)\n"
    "  -s, --text          the same as --to=text\n"
    "      --slice=FROM:TO write only events FROM to TO, a span of time (1.5s:2s), or\n"
    "                      the events between marks (@load:@done); begin with the\n"
    "                      blocks that were live before\n"
    "      --thread=N,...  write only these threads, and frees of their blocks by\n"
    "                      other threads\n"
    "      --anonymise     leave out addresses, names and the time of day; the rest\n"
    "                      replays the same\n"
    "      --time-resolution=STEP\n"
    "                      round times down to multiples of STEP, such as 100us;\n"
    "                      exact times take most of a file's bytes\n"
    "      --symbolise     write the names of functions, files and lines into the\n"
    "                      file: its call stacks can be read on another machine\n"
    "      --debug-dir=DIR also look in DIR for separate debug files; may be given\n"
    "                      more than once\n"
    "      --root=DIR      look for programs and libraries below DIR, such as\n"
    "                      /proc/PID/root of a process in a container\n"
    "      --verify        check FILE instead: checksums, index, totals, tags,\n"
    "                      addresses, times\n"
    "      --info          show the contents of FILE instead: header, counts, sizes\n"
    "      --json          with --info: show it as JSON\n"
    "      --color=auto|always|never\n"
    "                      with --info: print headings in bold. auto, the default:\n"
    "                      on a terminal, unless NO_COLOR is set\n"
    "      --level=N       level of compression with zstd, 1 to 19 (default 3)\n"
    "      --jobs=N        work with N threads (default: the processors that may be\n"
    "                      used); the output is the same for every N\n"
    "      --strict        stop at the first wrong line or event; do not count it\n"
    "  -h, --help          show this help\n"
    "  -V, --version       show the version\n"
    "\n"
    "Examples:\n"
    "  trace2cmt -o app.cmt heaptrack.app.4711.zst\n"
    "  trace2cmt --info app.cmt\n"
    "  trace2cmt --slice=1000:2000 --anonymise -o part.cmt app.cmt\n"
    "\n"
    "Exit status: 0 done, 1 could not, 2 wrong use.\n";

const std::vector<Option> known_options{{"from", Option::Takes::value},
                                        {"pid", Option::Takes::value},
                                        {"output", Option::Takes::value, 'o'},
                                        {"to", Option::Takes::value},
                                        {"text", Option::Takes::nothing, 's'},
                                        {"slice", Option::Takes::value},
                                        {"thread", Option::Takes::value},
                                        {"anonymise"},
                                        {"time-resolution", Option::Takes::value},
                                        {"symbolise"},
                                        {"debug-dir", Option::Takes::values},
                                        {"root", Option::Takes::value},
                                        {"info"},
                                        {"json"},
                                        {"color", Option::Takes::value},
                                        {"verify"},
                                        {"level", Option::Takes::value},
                                        cmt::command::jobs_option,
                                        {"strict"}};

namespace {

/// The form that the ending of the output's name means.
std::string form_by_ending(std::string_view path) {
  for (const auto& [ending, form] :
       {std::pair(".txt", "text"), {".trace", "text"}, {".csv", "csv"}, {".parquet", "parquet"}, {".rep", "rep"}})
    if (path.ends_with(ending)) return form;
  return "cmt";
}

const OutputForm& form_of(const CommandLine& line) {
  const std::string name = line.value("to", line.has("text") ? "text" : form_by_ending(line.value("output", "")));
  const OutputForm* const form = find_output_form(name);
  if (form == nullptr) {
    std::vector<std::string> names;
    for (const OutputForm& each : output_forms()) names.emplace_back(each.name);
    cmt::command::refuse_value("to", cmt::command::list_of(names), name);
  }
  if (line.has("text") && name != "text") throw UsageError("-s is --to=text, and --to=" + name + " is given too");
  return *form;
}

From from_of(const CommandLine& line) {
  From from{.format = line.value("from", "")};
  const auto names = logs::format_names();
  if (line.has("from") && std::find(names.begin(), names.end(), from.format) == names.end()) {
    cmt::command::refuse_value("from", cmt::command::list_of({names.begin(), names.end()}), from.format);
  }
  if (line.has("pid")) from.pid = line.number("pid", 0, 0, std::numeric_limits<std::int64_t>::max());
  return from;
}

std::optional<cmt::trace::SliceRange> slice_of(const CommandLine& line) {
  if (!line.has("slice")) return std::nullopt;
  return line.parsed("slice", "", cmt::trace::slice_form, cmt::trace::SliceRange::parse);
}

std::set<std::uint32_t> threads_of(const CommandLine& line) {
  std::set<std::uint32_t> threads;
  if (!line.has("thread")) return threads;
  const std::string text = line.value("thread", "");
  const char* at = text.data();
  const char* const end = at + text.size();
  for (bool more = true; more; ++at) {
    std::uint32_t thread = 0;
    const auto [next, error] = std::from_chars(at, end, thread);
    more = next != end;
    if (error != std::errc() || (more && *next != ',')) {
      cmt::command::refuse_value("thread", "a list of threads' numbers as in 0,3", text);
    }
    threads.insert(thread);
    at = next;
  }
  return threads;
}

std::uint64_t time_step_of(const CommandLine& line) {
  if (!line.has("time-resolution")) return 0;
  return line.parsed("time-resolution", "", "a step such as 100us", [](const std::string& text) {
    const auto ns = cmt::command::parse_duration(text);
    return ns && *ns > 0 ? std::optional(static_cast<std::uint64_t>(*ns)) : std::nullopt;
  });
}

Options::Task task_of(const CommandLine& line) {
  if (line.has("json") && !line.has("info")) throw UsageError("--json goes with --info");
  if (!line.has("info") && !line.has("verify")) return Options::Task::convert;
  const std::string task = line.has("info") ? "info" : "verify";
  line.refuse_together(task, {"output", "to", "text", "slice", "thread", "anonymise", "time-resolution", "symbolise",
                              "debug-dir", "root", "level", "strict"});
  line.refuse_together("info", {"verify"});
  line.file();
  return task == "info" ? Options::Task::info : Options::Task::verify;
}

}  // namespace

Options options_of(const CommandLine& line) {
  Options options;
  options.task = task_of(line);
  options.json = line.has("json");
  if (!line.files().empty()) options.inputs = line.files();
  if (std::count(options.inputs.begin(), options.inputs.end(), "-") > 1) {
    throw UsageError("standard input can be read once");
  }
  options.from = from_of(line);
  options.output = line.value("output", "-");
  options.level = static_cast<int>(line.number("level", 3, 1, 19));
  options.jobs = cmt::command::jobs_of(line);
  options.strict = line.has("strict");
  options.form = &form_of(line);
  options.slice = slice_of(line);
  options.threads = threads_of(line);
  options.anonymise = line.has("anonymise");
  options.time_step_ns = time_step_of(line);
  line.refuse_together("symbolise", {"anonymise"});
  options.symbolise = line.has("symbolise");
  options.debug_directories = line.values("debug-dir");
  if (options.symbolise && !options.form->has_stacks)
    throw UsageError("--symbolise goes with --to=cmt, text or heaptrack: " + std::string(options.form->name) +
                     " has no call stacks");
  if (line.has("debug-dir") && !options.symbolise) throw UsageError("--debug-dir needs --symbolise");
  if (line.has("root") && !options.symbolise) throw UsageError("--root needs --symbolise");
  options.root = line.value("root", "");
  return options;
}

}  // namespace cmt::trace2cmt
