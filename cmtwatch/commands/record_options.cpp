#include "cmtwatch/commands/record_options.h"

#include "cmtwatch/commands/options_common.h"

namespace cmt::watch {

const char record_help[] =
    R"(Usage: cmtwatch record [OPTION]... -o FILE PID...
       cmtwatch record [OPTION]... -o FILE --all
       cmtwatch record [OPTION]... -o FILE -- COMMAND [ARGUMENT]...

Records the memory of processes, mapping by mapping, in an SQLite file, until
they end or Ctrl-C. A recording that exists is gone on with.

  -o, --output=FILE  the recording
  --all              every process that may be read
  -r, --recursive    the descendants too, as they come
  --interval=TIME    between moments: 1s; a number alone is milliseconds
  -f, --frequency=HZ the same as moments a second
  --count=N          stop after so many moments
  --duration=TIME    stop after so long
  --max-cost=PERCENT record less often where it would take more than this share
                     of a processor: 10
  --keep=TIME        forget what is older
  --measure=WHAT,... these alone beside statm and processor times: mappings,
                     stacks (of threads, found by their stack pointers), totals
                     (the sums of the mappings, several times cheaper than
                     they), io, oom, system, disks, counters (of the processor);
                     or all. The default is all but totals and counters
  --pause            stop all threads while a moment is recorded; not with --all
  --plot=FILE        at the end, a picture of the recording, as .svg, .html,
                     .png or .pdf by FILE's ending: memory by kind and by
                     process, over time
  --root=DIR         a /proc elsewhere; else what PROCFS names
  -h, --help         say this
  --version          say the version

Exit status: 0 done, 1 could not, 2 wrong use; with a command its status, and
125 to 127 as cmtwatch run has them.
)";

std::vector<command::Option> record_options() {
  using command::Option;
  constexpr auto value = Option::Takes::value;
  return {{"all"},
          {"count", value},
          {"duration", value},
          {"frequency", value, 'f'},
          {"interval", value},
          {"keep", value},
          {"max-cost", value},
          {"measure", value},
          {"output", value, 'o'},
          {"pause"},
          {"plot", value},
          {"recursive", Option::Takes::nothing, 'r'},
          {"root", value}};
}

namespace {

Measures measures_of(const command::CommandLine& line) {
  const std::string names = line.value("measure", "");
  const auto measures = parse_measures(names);
  if (!measures) throw command::UsageError(std::string("--measure takes ") + measure_names + ", not '" + names + "'");
  return *measures;
}

}  // namespace

RecordOptions parse_record(const command::CommandLine& line, bool launches) {
  RecordOptions options;
  options.path = line.value("output", "");
  if (options.path.empty()) throw command::UsageError("-o FILE is missing");
  options.pace = parse_pace(line, 1'000'000'000);
  line.refuse_together("all", {"pause"});
  options.all = line.has("all");
  options.pause = line.has("pause");
  options.recursive = line.has("recursive");
  if (line.has("keep")) options.keep_ns = parse_time(line, "keep", "s");
  if (line.has("measure")) options.measures = measures_of(line);
  options.plot = parse_plot(line);
  options.root = root_of(line);
  if (launches) {
    options.command = line.files();
  } else {
    for (const std::string& word : line.files()) options.pids.push_back(parse_pid(word));
  }
  if (options.all != line.files().empty()) throw command::UsageError("expected PIDs, or --all, or -- and a command");
  return options;
}

}  // namespace cmt::watch
