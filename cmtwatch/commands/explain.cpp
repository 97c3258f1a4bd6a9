// cmtwatch explain: why a process is as big as it is, and what would give memory back.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/explain/explain_report.h"
#include "cmtwatch/explain/sites/trace_sites.h"
#include "cmtwatch/report/report_output.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/stat.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::watch {
namespace {

struct ExplainOptions {
  enum class Form { text, line, json };

  std::vector<int> pids;
  std::string core;   ///< a file; empty: the processes
  std::string trace;  ///< of the process; empty: none
  std::string output, plot;
  Form form = Form::text;
  explain::ExplainForm text;
  explain::ExplainRights rights;
  bool recursive = false;
  std::optional<std::int64_t> interval_ns{};  ///< of --watch
  std::uint64_t count = 0;                    ///< looks of --watch; 0: until the process ends
};

ExplainOptions parse_explain(const command::CommandLine& line) {
  ExplainOptions options;
  line.refuse_together("core", {"recursive", "stop", "watch", "call", "trim", "huge-pages"});
  line.refuse_together("trim", {"recursive", "watch", "brief"});
  line.refuse_together("call", {"watch", "brief"});
  line.refuse_together("huge-pages", {"watch", "brief"});
  line.refuse_together("json", {"verbose", "bytes"});
  line.refuse_together("brief", {"json", "verbose", "bytes"});
  line.refuse_together("watch", {"json", "brief", "verbose", "recursive"});
  if (line.has("count") && !line.has("watch")) throw command::UsageError("--count is for --watch");
  line.refuse_together("trace", {"recursive", "watch", "brief"});
  options.trace = line.value("trace", "");
  options.core = line.value("core", "");
  options.recursive = line.has("recursive");
  if (line.has("core") && !line.files().empty())
    throw command::UsageError("--core has the file: no process can be named beside it");
  if (!line.has("core") && line.files().empty()) throw command::UsageError("the number of a process is missing");
  for (const std::string& file : line.files()) options.pids.push_back(parse_pid(file));
  if (!options.trace.empty() && options.pids.size() > 1) throw command::UsageError("--trace is for one process");
  options.output = line.value("output", "");
  options.plot = parse_plot(line);
  if (!options.plot.empty() && (options.recursive || options.pids.size() > 1))
    throw command::UsageError("--plot is for one process");
  options.form = line.has("json")    ? ExplainOptions::Form::json
                 : line.has("brief") ? ExplainOptions::Form::line
                                     : ExplainOptions::Form::text;
  options.text = {.bytes = line.has("bytes"), .verbose = line.has("verbose"), .width = terminal::table_width()};
  options.rights = {.stops = line.has("stop"),
                    .calls = line.has("call"),
                    .counts_zeros = line.has("huge-pages"),
                    .trims = line.has("trim")};
  if (line.has("watch") && options.pids.size() > 1) throw command::UsageError("--watch is for one process");
  options.count = line.number("count", 0, 1, 1'000'000'000);
  if (line.has("watch"))
    options.interval_ns = line.value("watch", "").empty() ? 5'000'000'000 : parse_time(line, "watch");
  return options;
}

/// The processes that are named, and with --recursive those that descend from them.
std::vector<int> pids_of(const ExplainOptions& options) {
  if (!options.recursive) return options.pids;
  ProcessSet set(ProcessSet::Includes::descendants, "/proc");
  for (const int pid : options.pids) set.add(pid);
  return set.refresh_pids();
}

/// Throws if there is no such process, or it may not be read.
void check_living(int pid) { check_process(explain::has_ended(pid) ? pid : explain::living_thread(pid), "/proc"); }

/// `*status`: set to 1 if one of several processes cannot be explained, which is reported.
std::vector<explain::Explanation> look(const ExplainOptions& options, explain::BlockSites* sites, int* status) {
  std::vector<explain::Explanation> found;
  if (!options.core.empty()) {
    found.push_back(explain::explain_core(options.core, sites));
    return found;
  }
  for (const int pid : pids_of(options)) {
    const bool is_named = std::find(options.pids.begin(), options.pids.end(), pid) != options.pids.end();
    try {
      if (is_named && options.pids.size() > 1) check_living(pid);
      found.push_back(explain::explain_process(pid, options.rights, sites));
    } catch (const std::runtime_error& error) {
      if (!is_named && explain::has_ended(pid)) continue;
      if (options.pids.size() == 1) throw;
      command::complain("cmtwatch explain", error.what());
      *status = 1;
    }
  }
  return found;
}

void write(Destination& destination, const std::vector<explain::Explanation>& found, const ExplainOptions& options) {
  if (options.form == ExplainOptions::Form::json) {
    destination.write(explain::explain_json(found));
    return;
  }
  bool is_first = true;
  for (const explain::Explanation& each : found) {
    const bool is_line = options.form == ExplainOptions::Form::line;
    const std::string text = is_line ? explain::explain_line(each) : explain::explain_text(each, options.text);
    destination.write((is_first || is_line ? "" : "\n") + text);
    is_first = false;
  }
}

/// A row for each look, so that people see which part grows.
class WatchTable {
 public:
  explicit WatchTable(const ExplainOptions& options) : options_(options) {}

  std::string heading() const {
    return cells({"time", "resident", "live", "trimmable", "pinned", "arena tops", "other"});
  }

  std::string row(const explain::Explanation& each) {
    using explain::PartKind;
    if (begin_ns_ == 0) begin_ns_ = each.wall_ns;
    const std::uint64_t live = each.bytes_of(PartKind::live) + each.bytes_of(PartKind::large);
    const std::uint64_t free =
        each.bytes_of(PartKind::trimmable) + each.bytes_of(PartKind::pinned) + each.bytes_of(PartKind::arena_tops);
    const std::uint64_t other = each.resident_bytes - std::min(each.resident_bytes, live + free);
    return cells({output::seconds_text(each.wall_ns - begin_ns_), size(each.resident_bytes), size(live),
                  size(each.bytes_of(PartKind::trimmable)), size(each.bytes_of(PartKind::pinned)),
                  size(each.bytes_of(PartKind::arena_tops)), size(other)});
  }

 private:
  std::string size(std::uint64_t bytes) const { return amount(bytes, options_.text.bytes); }
  static std::string cells(const std::vector<std::string>& texts) {
    constexpr std::size_t column = 12;
    std::string line;
    for (const std::string& text : texts) line += output::padded(text, column);
    return line + "\n";
  }

  const ExplainOptions& options_;
  std::int64_t begin_ns_ = 0;
};

/// Looks again and again until the process ends, or Ctrl-C.
int watch_parts(const ExplainOptions& options, Destination& destination,
                std::vector<explain::Explanation>& looks_done) {
  const command::Interrupts interrupts;
  WatchTable table(options);
  const int pid = options.pids[0];
  // explain_process() reports that the process has just ended.
  const std::uint64_t start = explain::has_ended(pid) ? 0 : process::read_stat(pid).start_ticks;
  for (std::uint64_t looks = 1;; ++looks) {
    explain::Explanation found;
    try {
      if (looks > 1 && process::read_stat(pid).start_ticks != start) return 0;
      found = explain::explain_process(pid, options.rights);
    } catch (const std::exception&) {
      if (looks == 1 || !explain::has_ended(pid)) throw;
      return 0;
    }
    destination.write((looks == 1 ? table.heading() : "") + table.row(found));
    if (!options.plot.empty()) {
      found.heap.reset();  // the parts are drawn, and the heap's lists are large
      looks_done.push_back(std::move(found));
    }
    if (looks == options.count) return 0;
    pollfd waits{interrupts.fd(), POLLIN, 0};
    const timespec interval{*options.interval_ns / 1'000'000'000, *options.interval_ns % 1'000'000'000};
    if (::ppoll(&waits, 1, &interval, nullptr) > 0) return 0;
  }
}

int explain_memory(const command::CommandLine& line) {
  const ExplainOptions options = parse_explain(line);
  if (options.pids.size() == 1) check_living(options.pids.front());
  Destination destination(options.output, STDOUT_FILENO,
                          options.interval_ns ? Destination::Names::at_once : Destination::Names::whole);
  std::optional<picture::PictureFile> picture;
  if (!options.plot.empty()) picture.emplace(options.plot);
  std::optional<explain::BlockSites> sites;
  if (!options.trace.empty()) sites = explain::read_block_sites(options.trace);
  std::vector<explain::Explanation> found;
  int status = 0;
  if (options.interval_ns) {
    status = watch_parts(options, destination, found);
  } else {
    found = look(options, sites ? &*sites : nullptr, &status);
    write(destination, found, options);
    destination.commit();
  }
  if (picture)
    write_picture(*picture, explain::explain_picture(found), explain::explain_json(found), "cmtwatch explain");
  return status;
}

}  // namespace

Subcommand explain_subcommand() {
  return {.name = "explain",
          .summary = "print why a process is so big, and what gives memory back",
          .help = R"(Usage: cmtwatch explain [OPTION]... PID...
       cmtwatch explain [OPTION]... --core=FILE

Prints the resident memory of a process by parts: live blocks of malloc, free
memory that malloc_trim would give back, free memory that live blocks keep,
other anonymous memory, stacks, files. Then it prints what could be done. It
reads glibc's heap from outside; the process runs on, and nothing in it changes.

  -r, --recursive    explain the processes that descend from PID, too
  -v, --verbose      print which sizes of blocks keep free memory, and how full
                     pages are
  -w, --watch[=TIME] print a row of the parts every TIME, until the process ends
                     or Ctrl-C. Default: 5s
  --count=N          stop watching after N rows
  --stop             stop all threads meanwhile, for exact figures of a process
                     that allocates
  --trim             call malloc_trim(0) in the process after the look, and
                     report what it gave back
  --call             ask jemalloc or tcmalloc for its figures, by a call in the
                     process
  --huge-pages       count the pages of 4 KiB in huge pages that are all zeros;
                     this reads all huge pages
  --trace=FILE       name the calls whose blocks keep free memory, and the call
                     that raised malloc's threshold for mappings, by a trace of
                     the process (cmttrace)
  --core=FILE        explain a core file of the kernel's or of gcore
  --brief            print one line for scripts, in bytes
  --bytes            print numbers in bytes
  --json             print a JSON object
  --plot=FILE        draw the parts as a bar, with --watch over time; FILE
                     ends in .svg, .html, .png or .pdf
  -o, --output=FILE  write to FILE instead of standard output
)",
          .run = explain_memory};
}

}  // namespace cmt::watch
