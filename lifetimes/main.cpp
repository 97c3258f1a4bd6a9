// lifetimes: reports how long blocks live, and which functions allocate. One command line has five commands: annotate a
// trace, summarise it, count its pairs of lifetime and size, merge summaries, or report allocations by function.

#include <tsl/robin_map.h>

#include <algorithm>
#include <boost/functional/hash.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/fates/live_blocks.h"
#include "analysis/groups/options.h"
#include "lifetimes/annotate.h"
#include "lifetimes/as_if_sampled.h"
#include "lifetimes/baseline.h"
#include "lifetimes/by_stack.h"
#include "lifetimes/diff.h"
#include "lifetimes/summarise.h"
#include "lifetimes/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {
namespace {

using command::CommandLine;
using trace::Options;

constexpr const char* tool = "lifetimes";

const char help_text[] =
    R"(Usage: lifetimes [OPTION]... [FILE]
       lifetimes --merge [OPTION]... JSON...
       lifetimes --diff=TRACE [OPTION]... [FILE]
       lifetimes --summary --json TRACE...

Annotates a trace, text or .cmt, with the lifetimes of its blocks. Each line
that ends a block gets the block's size and its age in lines:

  free(81d3b83a0<6656>)                       # 16 bytes, allocated 1 lines ago

Without FILE, or where FILE is -, the trace is read from standard input. The log
of another tool is read too (man trace2cmt lists them).

On a terminal a .cmt is summarised, unless an option of the lines is given.

  --annotate     annotate also on a terminal
  --clock=UNIT   the unit of ages: events (called lines; the default), time
                 (where it was recorded), bytes (allocated meanwhile)
  --leaks        at the end, add a comment line for every block still live
  --totals       also show the live bytes and blocks after the event

Instead of annotating:

  --summary      print lifetimes by size, short-lived and temporary blocks,
                 blocks freed by another thread, reallocation chains, the peak
                 and leaks. Several traces need --json alone, which prints a
                 list
  --counts       print how often each pair of lifetime and size occurs, in lines
                 of count, lifetime and size
  --merge        add up summaries that --summary --json wrote
  --json         print the summary, or the table of --by, as JSON
  --csv          print the summary's size classes, or the table of --by, as
                 comma-separated values
  --plot=FILE    draw how many blocks of which size lived how long. FILE ends in
                 .svg, .html, .png or .pdf. With --summary, --json or --csv the
                 summary is printed too

  --pool=NAME    count the blocks of a pool that the program cuts from malloc's
                 or the system's memory, instead of malloc's: python has
                 CPython's objects. Not for annotated lines

Who allocates:

  --by=WHAT      a table by function, caller (functions with the tree of their
                 callers), line or library, in a trace with call stacks; or by
                 thread, size or phase (from a mark to the next). The columns
                 are bytes and blocks live at the peak, allocated, and live at
                 the end; temporary blocks; and the sorted figure with callees.
                 The largest stack follows
  --sort=FIGURE  by peak (the default), bytes or blocks (allocated), live (at
                 the end), temporary, short-lived, other-thread (ended by
                 another thread), reallocated, growth (bytes live at the end
                 less those at the start, of a slice), or untouched (bytes never
                 touched, where touched pages were recorded)
  --inclusive    sort by figures that include callees
  --top=N        print the first N rows only; 0 means all. The default is 20, or
                 0 with --json and --csv
  --min=SHARE    leave out rows below this share of the total, for example 2.5%.
                 The default is 0, or 1% with --by=caller
  --slice=FROM:TO
                 count only what happens from FROM to TO, in events, in time
                 (1.5s:2s), between marks (@load:@done), or from a mark to the
                 next (@load)
  --focus=REGEX  count only stacks with a matching function, file, line
                 (rows.py:41) or library
  --ignore=REGEX leave out such stacks
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
  --diff=TRACE   print what changed from TRACE to FILE, the largest change
                 first, by function or by the WHAT of --by. The traces may be of
                 different builds
  --baseline=OLD compare FILE with OLD, a trace or a summary in JSON. Prints a
                 line for each figure, and exits with 3 if FILE is worse. If
                 both are traces with call stacks, also reports by function.
                 With --by=phase, compares each phase
  --fail-if=LIST the shares by which figures may be worse. The default is
                 allocations+1%,peak+2%,leaks+0%. The figures are allocations,
                 bytes, peak and leaks. Of phases: allocations+0%,bytes+1%
  --as-if-sampled=SIZE
                 compare the estimates of a sampler that takes a block each SIZE
                 bytes (64K, 512K, 4M) with the truth, for each row of --by
  --runs=N       simulate N samplers, 64 at most. The default is 30
  --seed=N       of their random numbers. The default is 1
  --folded[=FIGURE]
                 write stacks as lines "main;f;g 123", for flame graph tools
  --pprof=FILE.pb.gz
                 write a profile for pprof
  --speedscope=FILE
                 write the stacks as JSON for speedscope
  --debug-dir=DIR
                 also look in DIR for separate debug files; may be given more
                 than once

  -o, --output=FILE
                 write to FILE instead of standard output: .json, .csv, .svg,
                 .html, .png and .pdf write that form, as --json, --csv, --plot
  --jobs=N       use N threads at most; the default is as many as there are
                 processors for this process
  --strict       stop at the first defect of the trace; else defects are
                 reported and counted
  --color=auto|always|never
                 print headings in bold. auto, the default: on a terminal,
                 unless NO_COLOR is set
  -h, --help     show this help
  -V, --version  show the version

Examples:
  lifetimes --summary app.cmt
  lifetimes --by=function --sort=live app.cmt
  lifetimes --by=caller --slice=@load:@done --sort=growth app.cmt

Exit status: 0 done, 1 could not, 2 wrong use, 3 worse than the baseline.
)";

/// Whether a file is a sampled trace. Its summary is the table by size.
bool is_sampled(const Options& options) {
  return options.path != "-" && options.plot.empty() && options.pool.empty() &&
         command::open_trace(options.path, {.addresses = false}, command::Samples::accepted).header().sampled() != 0;
}

void summarise(const Options& options) {
  trace::SummaryOutput output(options);
  output.write(summary_of(options), {to_text, to_csv, to_picture});
}

/// Prints the summaries of several traces as a JSON array, which --merge adds up.
void summarise_all(Options options, const std::vector<std::string>& paths) {
  output::JsonWriter json;
  json.begin_array();
  for (const std::string& path : paths) {
    options.path = path;
    output::JsonFields(json).element(summary_of(options));
  }
  json.end_array();
  command::print(json.take());
}

/// Returns whether several traces are to be summarised. Throws UsageError if other options exclude that.
bool summarises_several(const CommandLine& line) {
  if (line.files().size() < 2 || !line.has("summary")) return false;
  if (!line.has("json"))
    throw command::UsageError("--summary of several traces needs --json; --merge adds up what that writes");
  line.refuse_together("summary", {"plot"});
  return true;
}

/// Lifetime and size.
using Pair = std::pair<std::uint64_t, std::uint64_t>;
using PairCounts = tsl::robin_map<Pair, std::uint64_t, boost::hash<Pair>>;

/// Lines "  COUNT LIFETIME SIZE", sorted by lifetime as a number, then by size as text, as the original's sort does.
std::string pairs_text(const PairCounts& counts) {
  std::vector<std::tuple<std::uint64_t, std::string, std::uint64_t>> lines;
  lines.reserve(counts.size());
  for (const auto& [pair, count] : counts) lines.emplace_back(pair.first, std::to_string(pair.second), count);
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& [lifetime, size, count] : lines)
    text += output::padded(std::to_string(count), 7) + " " + std::to_string(lifetime) + " " + size + "\n";
  return text;
}

/// The output is that of the original's lifetimes-summary.sh, byte for byte. Memory: the live blocks, and some 40 bytes
/// a pair.
void count_pairs(const Options& options) {
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
  };
  trace::Trace trace(options, false);
  analysis::LiveBlocks<Block> live(options.clock, trace.complaints());
  PairCounts counts;
  trace.for_each([&](const Event& event) {
    live.start_event(event);
    if (event.ends_block()) {
      const Block* const block = live.end_block(event.old_tag);
      if (block != nullptr) ++counts[{live.clock().now() - block->born, block->size}];
    }
    if (event.makes_block()) live.begin_block(event);
  });
  command::print(pairs_text(counts));
  trace.complaints().say_count();
}

void merge(const Options& options, const std::vector<std::string>& paths) {
  trace::SummaryOutput output(options);
  std::optional<Summary> sum;
  for (const std::string& path : paths) {
    for (Summary& other : read_json(path)) {
      if (!sum) {
        sum = std::move(other);
        continue;
      }
      if (other.clock != sum->clock) {
        throw FormatError(path, "its lifetimes are by another clock than those of " + paths.front());
      }
      sum->merge(other);
    }
  }
  output.write(*sum, {to_text, to_csv, to_picture});
}

/// Returns whether an option asks for a report by stack. Throws UsageError if options do not go together.
bool refuse_stack_options(const CommandLine& line) {
  for (const char* const what : {"by", "folded", "pprof", "speedscope", "diff"})
    line.refuse_together(what, {"merge", "summary", "counts", "annotate", "leaks", "totals", "plot"});
  for (const char* const what : {"folded", "pprof", "speedscope"})
    line.refuse_together(what, {"by", "sort", "inclusive", "top", "min", "clock", "json", "csv", "diff"});
  for (const char* const what : {"folded", "speedscope"}) line.refuse_together(what, {"skip", "raw"});
  line.refuse_together("folded", {"pprof", "speedscope"});
  line.refuse_together("pprof", {"speedscope"});
  for (const char* const what : {"by", "diff", "folded", "pprof", "speedscope"}) {
    if (line.has(what)) return true;
  }
  analysis::refuse_without(line, {"sort", "inclusive", "top", "min"}, "--by or --diff");
  analysis::refuse_without(line, {"skip", "raw"}, "--by, --diff or --pprof");
  analysis::refuse_without(line, {"slice", "native", "focus", "ignore", "hide", "debug-dir"},
                           "--by, --diff, --folded, --pprof or --speedscope");
  return false;
}

/// Returns the first trace of a difference; the second is the operand. Throws UsageError.
std::string diff_option(const CommandLine& line) {
  std::string path = line.value("diff", "");
  if (path == "-" && line.file() == "-") throw command::UsageError("--diff needs two traces");
  return path;
}

int run(const CommandLine& line) {
  refuse_baseline_options(line);
  line.refuse_together("merge", {"summary", "counts", "clock", "strict", "annotate", "leaks", "totals"});
  line.refuse_together("counts", {"summary", "json", "csv", "plot", "annotate", "leaks", "totals"});
  line.refuse_together("pool", {"merge", "annotate", "leaks", "totals"});
  const bool judges_samplers = asks_as_if_sampled(line);
  const bool asks_for_stacks = judges_samplers || refuse_stack_options(line);
  Options options = trace::parse_options(tool, line, {"annotate", "leaks", "totals"});
  if (line.has("merge")) {
    merge(options, line.files().empty() ? std::vector<std::string>{"-"} : line.files());
    return 0;
  }
  if (summarises_several(line)) return summarise_all(options, line.files()), 0;
  options.path = line.file();
  if (judges_samplers) return judge_samplers(options, line), 0;
  if (line.has("baseline")) return judge_by_baseline(options, line);
  if (line.has("diff"))
    report_difference(diff_option(line), options, parse_stack_options(line));
  else if (asks_for_stacks)
    report_stacks(options, parse_stack_options(line));
  else if (line.has("counts"))
    count_pairs(options);
  else if (options.summarises || !options.pool.empty() ||
           trace::prefers_summary(options, line, {"annotate", "leaks", "totals"})) {
    if (!is_sampled(options)) return summarise(options), 0;
    StackOptions by_size;
    by_size.contributors.by = analysis::By::size;
    report_stacks(options, by_size);
  } else
    annotate_trace(options);
  return 0;
}

std::vector<command::Option> options() {
  using Takes = command::Option::Takes;
  return trace::known_options(analysis::group_options({{"counts"},
                                                       {"merge"},
                                                       {"pool", Takes::value},
                                                       {"slice", Takes::value},
                                                       {"folded", Takes::value_or_nothing},
                                                       {"pprof", Takes::value},
                                                       {"speedscope", Takes::value},
                                                       {"as-if-sampled", Takes::value},
                                                       {"runs", Takes::value},
                                                       {"seed", Takes::value},
                                                       {"diff", Takes::value},
                                                       {"baseline", Takes::value},
                                                       {"fail-if", Takes::value}}));
}

}  // namespace
}  // namespace cmt::lifetimes

int lifetimes_main(int argc, char** argv) {
  using namespace cmt::lifetimes;
  return cmt::command::run(argc, argv,
                           {.name = tool,
                            .version = CMT_VERSION,
                            .help = help_text,
                            .options = cmt::lifetimes::options(),
                            .run = run,
                            .output = cmt::command::Tool::Output::all});
}
