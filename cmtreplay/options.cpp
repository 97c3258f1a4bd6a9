#include "cmtreplay/options.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <optional>

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
                                        {"pin", Option::Takes::value},
                                        {"timeout", Option::Takes::value},
                                        {"force"},
                                        {"prepared"},
                                        {"stream"}};

namespace {

[[noreturn]] void wrong(const std::string& option, const std::string& wanted, const std::string& given) {
  throw UsageError("--" + option + " is " + wanted + ", not '" + given + "'");
}

/// The option's value, which is one of these words.
std::string one_of(const CommandLine& line, const std::string& option, const std::vector<std::string>& words) {
  const std::string given = line.value(option, words.front());
  if (std::find(words.begin(), words.end(), given) != words.end()) return given;
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  wrong(option, list, given);
}

/// A span of time of a second to eleven days, rounded up; nothing where it is none.
std::optional<unsigned> whole_seconds(const std::string& text) {
  constexpr std::int64_t second = 1'000'000'000, most = 1'000'000;
  const auto span = command::parse_duration(text, "s");
  if (!span || *span < second || *span > most * second) return std::nullopt;
  return static_cast<unsigned>((*span + second - 1) / second);
}

/// "real", or "x" and a number; 0 where it is not given.
double pace(const CommandLine& line) {
  if (!line.has("pace")) return 0;
  const std::string given = line.value("pace", "");
  if (given == "real") return 1;
  double factor = 0;
  const char* const end = given.data() + given.size();
  const auto [stop, error] = std::from_chars(given.data() + (given.starts_with("x") ? 1 : 0), end, factor);
  if (!given.starts_with("x") || error != std::errc() || stop != end || !(factor >= 1e-3 && factor <= 1e6))
    wrong("pace", "real or xN, N from 0.001 to 1000000", given);
  return factor;
}

/// Where nothing is said, a replay that keeps the recorded pace has the program's time anyway.
ClockRuns clock_runs(const CommandLine& line) {
  if (!line.has("clock")) return line.has("pace") ? ClockRuns::none : ClockRuns::memory;
  return one_of(line, "clock", {"recorded", "system"}) == "recorded" ? ClockRuns::all : ClockRuns::none;
}

/// "0", "0,2", "4-7", as in taskset(1).
std::vector<int> cpus(const CommandLine& line) {
  std::vector<int> list;
  const std::string given = line.value("pin", "");
  const char* at = given.data();
  const char* const end = at + given.size();
  const auto number = [&] {
    int value = -1;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value >= CPU_SETSIZE) wrong("pin", "a list of CPUs such as 0,2-3", given);
    at = stop;
    return value;
  };
  while (line.has("pin")) {
    const int first = number();
    const int last = at != end && *at == '-' ? (++at, number()) : first;
    for (int cpu = first; cpu <= last; ++cpu) list.push_back(cpu);
    if (last < first) wrong("pin", "a list of CPUs such as 0,2-3", given);
    if (at == end) break;
    if (*at++ != ',') wrong("pin", "a list of CPUs such as 0,2-3", given);
  }
  return list;
}

void check_output(const Options& options) {
  if (options.output.empty() && options.new_trace && options.allocators.size() > 1) {
    throw UsageError("-v writes the new trace of one allocator, and " + std::to_string(options.allocators.size()) +
                     " are given; -o with %a in its name writes one each");
  }
  const bool one_each = options.output.find("%a") != std::string::npos;
  if (!options.output.empty() && options.allocators.size() > 1 && !one_each)
    throw UsageError("-o needs %a in its name where several allocators are given");
}

/// The allocators, and what is to be written about them.
void read_allocators(const CommandLine& line, Options& options) {
  options.allocators = line.values("alloc");
  if (options.allocators.empty()) options.allocators.emplace_back("libc");
  for (const std::string& name : options.allocators) {
    if (name.empty()) throw UsageError("--alloc needs a name");
  }
  options.prefix = line.value("prefix", "");
  options.output = line.value("output", "");
  options.new_trace = line.has("new-trace") || line.has("output");
  options.verify = line.has("verify");
  options.json = line.has("json");
  options.csv = line.has("csv");
  options.plot = line.checked("plot", output::PictureFile::fault_of);
  line.refuse_together("json", {"csv"});
  line.refuse_together("verify", {"csv", "plot", "runs", "budget", "new-trace", "output", "touch"});
  if (line.has("prefix") && options.prefix.empty()) throw UsageError("--prefix needs the beginning of a name");
  if (line.has("output") && options.output.empty()) throw UsageError("-o needs a file");
  if (options.verify && std::count(options.allocators.begin(), options.allocators.end(), "null") != 0)
    throw UsageError("--verify needs memory, and null hands out none");
  check_output(options);
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
  read_allocators(line, options);
  options.file = line.file();
  if (line.has("runs")) options.runs = static_cast<unsigned>(line.number("runs", 1, 1, 1000));
  options.budget_ns = std::uint64_t{1'000'000'000} * line.parsed("budget", options.new_trace ? "1s" : "10s",
                                                                 "a time of at least 1s, such as 2min", whole_seconds);
  line.refuse_together("runs", {"budget"});
  options.seed = static_cast<unsigned>(line.number("seed", 1, 0, 4'000'000'000));
  options.trace.strict = one_of(line, "order", {"free", "strict"}) == "strict";
  options.trace.threads = one_of(line, "threads", {"recorded", "1"}) == "recorded";
  options.force = line.has("force");
  options.touch = one_of(line, "touch", {"page", "none", "first", "all"});
  options.pace = pace(line);
  options.clock = clock_runs(line);
  options.trace.timed = options.pace > 0 || options.clock != ClockRuns::none;
  options.cpus = cpus(line);
  options.timeout_seconds = line.parsed("timeout", "60s", "a time of at least 1s, such as 2min", whole_seconds);
  line.refuse_together("stream", {"prepared"});
  const std::uint64_t without_asking = line.has("stream") ? 0 : process::available_memory_bytes() / 2;
  options.trace.prepared_bytes_max = line.has("prepared") ? std::uint64_t{1} << 46 : without_asking;
  return options;
}

const char* const help_text = R"(Usage: cmtreplay [OPTION]... [FILE]

Replays a trace (text, .cmt or legacy .cmt; standard input without FILE or for
-) on one or several allocators, each run in a fresh process, and shows the time
and memory that they took: a table on standard output, fastest first.

  --alloc=NAME   an allocator to replay on; may be given more than once, and
                 ratios are to the first that is not null and refused no call.
                 NAME is one of
                   libc      the C library's (the default)
                   null      returns addresses that are never touched: the cost
                             of the replay itself; always shown as the last line
                   jemalloc, tcmalloc, mimalloc, tbb, scudo
                             as packaged, if installed
                   a path    /opt/my.so, ./my.so, my.so in this folder
                   a soname  libjemalloc.so.2, found through the loader
                 settings of its environment may follow:
                   jemalloc,MALLOC_CONF=background_thread:true
  --prefix=P     call Pmalloc, Pfree, ... of libraries that have them, as
                 scalable_ or je_; missing calls are emulated
  --runs=N       timed runs of each allocator, 1 to 1000; else one to warm up,
                 and 10 or more, until the median is known to 1 % or the budget
                 is spent
  --budget=TIME  for the timed runs of an allocator: 2min; a number alone is
                 seconds (default 10s; 1s with -v or -o)
  --seed=N       seed of the order in which allocators take turns (default 1)
  --threads=1    replay all calls on one thread, in recorded order; else
                 (recorded) each thread's on its own, which starts and ends as
                 in the trace and waits only for other threads' blocks
  --order=strict one call at a time, in recorded order, on the recorded threads
  --pace=real    keep the recorded times; --pace=xN: N times as fast
  --clock=recorded
                 the allocator reads the recorded time of the current event, by
                 which it purges as in the program, at full speed; without this
                 option so in memory runs, where times were recorded and --pace
                 is not given; --clock=system: never
  --touch=WHAT   bytes of each block to write: none, the first, one in each page
                 with the first and the last (page, the default), or all; not of
                 large blocks of a trace that tells which of their pages were
                 touched, and when: these are written then, and no others
  --pin=LIST     run on these CPUs only: 0,2-3
  --timeout=TIME in which no call returns, after which an allocator counts as
                 hung: 2min; a number alone is seconds (default 60s)
  --force        replay also a trace that needs more memory than is available
  --prepared     keep the trace's operations in memory, 8 bytes for an event;
                 --stream: in a temporary file (in TMPDIR, else /var/tmp). Else
                 in memory if they take at most half of what is free
  --json         write JSON (schema cmt.replay/1): all samples, and memory at
                 100 marks along the trace
  --csv          write the table with plain numbers, a line for each allocator
  --plot=FILE    draw live and resident memory along the trace for all
                 allocators, how long calls took, and the tables, too; FILE ends
                 in .svg, .html (to zoom into), .png or .pdf
  --verify       check every call instead: alignment, overlap, contents, zeros,
                 usable size, NULL for impossible sizes; a line for each fault
  -v, --new-trace
                 write the trace as text with the addresses that this allocator
                 returned; the table then goes to standard error
  -o, --output=FILE
                 write that trace to FILE; .cmt if its name ends so, else text.
                 %a is the allocator's name, needed for several allocators
  -h, --help     show this help
  --version      show the version

Columns: time is the median of the timed runs, and 95 % the interval in which
the median lies with that confidence (bootstrap); CPU is their processor time,
and kernel the part of it that the kernel took, mostly for pages that are
touched first; ns/call is the rest of CPU for a call; faults are page faults.
Resident memory is the allocator's own, from up to three separate runs: before
the first call, at the peak, its mean over the recorded time (over the events
where none was recorded), and at the end; fragmentation is resident over live
bytes where most are live. One that "purges by the clock" read the system's,
because no times were recorded, and may keep more memory than in the program.
Tables below show how long single calls took, one in 64, from separate runs, and
hardware counters where the machine has them. Calls that were refused when
recorded are left out. An allocator that refused others had less to do: it is
marked, and ranks behind.

Below the tables is a verdict on each pair of allocators: runs of the same round
are compared, and all verdicts together hold with 95 % (sign test, corrected for
the number of pairs). "9 % faster" takes 9 % less time.

Exit status: 0 done, 1 an allocator or the trace could not be used, or an
allocator crashed or broke a promise; 2 wrong use.
)";

}  // namespace cmt::replay
