#include "cmtwatch/commands/options_common.h"
#include "cmtwatch/working_set/working_set.h"

namespace cmt::watch {

const char wss_help[] =
    R"(Usage: cmtwatch wss [OPTION]... PID

Tells the working set of a process: the memory that it touches in an interval.
Its pages are marked at the interval's begin and looked at at its end, page by
page by the kernel's bitmap of idle pages, or mapping by mapping by clear_refs,
which works everywhere. Both marks are shared by all who use them: others who
write clear_refs or the bitmap meanwhile disturb this.

  -w, --watch        interval after interval, until the process ends or Ctrl-C
  -v, --verbose      each mapping of which something was touched
  --method=METHOD    idle (pages) or referenced (mappings): the first that works
  --kind=KIND,...    only mappings that are heap, anonymous, file or stack
  --permissions=RWX  only mappings with these permissions: r, w, x or several
  --longer-than=N    only mappings of more than so many pages
  --interval=TIME    from marks to reading: 1s; a number alone is milliseconds
  -f, --frequency=HZ the same as intervals a second
  --count=N          stop after so many intervals
  --duration=TIME    stop after so long
  --max-cost=PERCENT make intervals longer where measuring would take more than
                     this share of a processor: 10
  --pause            stop all threads while pages are looked at and marked
  --bytes            numbers in bytes
  --json             all intervals as JSON
  --csv              every interval as comma-separated values, with -v every
                     mapping
  --plot=FILE        a picture, as .svg, .html, .png or .pdf by FILE's ending:
                     the working set over time; which pages or mappings it is
                     made of; of pages how far apart their uses are
  -o, --output=FILE  write to FILE instead of standard output
  --root=DIR         a /proc elsewhere; else what PROCFS names
  --sys=DIR          a /sys elsewhere
  -h, --help         say this
  --version          say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

using command::CommandLine;
using command::Option;
using command::UsageError;

std::vector<Option> wss_options() {
  constexpr auto value = Option::Takes::value;
  constexpr auto nothing = Option::Takes::nothing;
  return {{"bytes"},
          {"count", value},
          {"csv"},
          {"duration", value},
          {"frequency", value, 'f'},
          {"interval", value},
          {"json"},
          {"kind", value},
          {"longer-than", value},
          {"max-cost", value},
          {"method", value},
          {"output", value, 'o'},
          {"pause"},
          {"permissions", value},
          {"plot", value},
          {"root", value},
          {"sys", value},
          {"verbose", nothing, 'v'},
          {"watch", nothing, 'w'}};
}

namespace {

MappingFilter parse_filter(const CommandLine& line) {
  MappingFilter filter;
  if (line.has("kind"))
    filter.kinds = line.parsed("kind", "", std::string("some of ") + mapping_kind_names, parse_mapping_kinds);
  filter.permissions = line.value("permissions", "");
  const bool letters = filter.permissions.find_first_not_of("rwx") == std::string::npos && !filter.permissions.empty();
  if (line.has("permissions") && !letters)
    throw UsageError("--permissions: expected some of r, w and x, not '" + filter.permissions + "'");
  filter.longer_than = line.number("longer-than", 0, 0, std::uint64_t{1} << 52);
  return filter;
}

std::optional<TouchMethod> parse_method(const CommandLine& line) {
  const std::string name = line.value("method", "");
  if (name == "idle") return TouchMethod::idle;
  if (name == "referenced") return TouchMethod::referenced;
  if (line.has("method")) throw UsageError("--method is idle or referenced, not '" + name + "'");
  return std::nullopt;
}

}  // namespace

WssOptions parse_wss(const CommandLine& line) {
  line.refuse_together("json", {"csv"});
  WssOptions options;
  options.method = parse_method(line);
  options.pace = parse_pace(line, 1'000'000'000);
  if (line.has("json")) options.form = WssOptions::Form::json;
  if (line.has("csv")) options.form = WssOptions::Form::csv;
  options.pause = line.has("pause");
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.output = line.value("output", "");
  options.plot = parse_plot(line);
  if (line.files().size() != 1) throw UsageError("expected one PID");
  options.target = {.pid = parse_pid(line.files()[0]),
                    .root = root_of(line),
                    .sys = line.value("sys", "/sys"),
                    .filter = parse_filter(line)};
  const bool again = line.has("watch") || line.has("count") || line.has("duration") || line.has("plot");
  if (!again) options.pace.count = 1;
  return options;
}

}  // namespace cmt::watch
