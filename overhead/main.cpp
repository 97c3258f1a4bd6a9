// overhead: reports the places of blocks in memory. Annotates a trace, summarises it, or reports the holders of pages.

#include <bit>
#include <charconv>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/groups/options.h"
#include "analysis/places/summarise.h"
#include "overhead/annotate.h"
#include "overhead/by_holder.h"
#include "overhead/forms.h"
#include "overhead/heap_tops.h"
#include "overhead/pool_use.h"
#include "toolkit/command/command_line.h"
#include "toolkit/trace/stages.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::overhead {
namespace {

using namespace analysis;
using command::CommandLine;
using command::UsageError;
using trace::Options;

constexpr const char* tool = "overhead";

const char help_text[] =
    R"(Usage: overhead [OPTION]... [FILE]

Annotates a trace, text or .cmt, with where its blocks lie. Each line that makes
or ends a block gets the nearest live blocks on either side, the gaps to them in
bytes, the block's pages, and by how many pages the memory in use grows or
shrinks. A realloc has both, separated by "; ". The trace must have addresses.

  malloc(20) = 81d2899a0<8>                     # prev 81d289980, gap 0, ...

Without FILE, or where FILE is -, the trace is read from standard input. The log
of another tool is read too (man trace2cmt lists them).

On a terminal a .cmt is summarised, unless an option of the lines is given.

  --annotate     annotate also on a terminal
  --clock=UNIT   the unit of ages: events (called lines; the default), time
                 (where it was recorded), bytes (allocated meanwhile). With
                 --plot it is the unit of the picture's x axis, and the default
                 is time where it was recorded
  --huge-pages   also count pages of 2 MiB
  --leaks        at the end, add a comment line for every block still live
  --page-size=N  bytes of a page, a power of two; K, M or G may follow (4K)
  --totals       also show the live bytes, blocks and pages after the event

Instead of annotating:

  --summary      print live bytes, pages, gaps and pinned pages over time, which
                 blocks hold the pages, and which blocks at the top of glibc's
                 heaps prevent them from shrinking
  --json         print the summary, or the table of --by, as JSON
  --csv          print the summary's samples, or the table of --by, as
                 comma-separated values
  --plot=FILE    draw live bytes and pages over time, and which addresses were
                 live when. FILE ends in .svg, .html, .png or .pdf. With
                 --summary, --json or --csv the summary is printed too

  --pool=NAME    summarise a pool that the program cuts from malloc's blocks or
                 from the system's memory (cmttrace --pool): its live blocks and
                 the unused bytes in its arenas over time, and sizes and ages of
                 the blocks. The trace needs no addresses; pages and gaps of
                 such blocks are not known. Goes with --by too

Who holds the pages:

  --by=WHAT      a table by function, caller (functions with the tree of their
                 callers), line or library, in a trace with call stacks; or by
                 thread, size or phase (from a mark to the next). The columns
                 include the unused bytes on the pages of the blocks, the pages,
                 and the bytes saved by separating long- from short-lived
                 blocks. The largest stack follows
  --at=MOMENT    the moment of the table: unused (the default, the sample with
                 the most unused bytes on pages), peak (of live bytes), after so
                 many events, at a time (1.5s), or at a mark (@load)
  --sort=FIGURE  by unused (the default), pages (the share of them), sole (pages
                 without blocks of others), live (bytes), blocks, old-pages,
                 pinned or separable. With --pool: live (the default) or blocks
  --inclusive    sort by figures that include callees
  --top=N        print the first N rows only; 0 means all. The default is 20, or
                 0 with --json and --csv
  --min=SHARE    leave out rows below this share of the total, for example 2.5%.
                 The default is 0, or 1% with --by=caller
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
  overhead --summary app.cmt
  overhead --plot=app.html app.cmt
  overhead --by=function --at=peak app.cmt

Exit status: 0 done, 1 could not, 2 wrong use.
)";

/// "4096", "4K", "2M": the power of two.
int parse_page_shift(const std::string& text) {
  std::uint64_t bytes = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, bytes);
  const auto unit = std::string_view("KMG").find(rest == end ? '\0' : *rest);
  const bool has_unit = end - rest == 1 && unit != std::string_view::npos;
  const bool sound =
      error == std::errc() && (rest == end || has_unit) && std::has_single_bit(bytes) && bytes < 1u << 31;
  if (!sound) throw UsageError("--page-size: expected a power of two, not " + text);
  const int shift = std::countr_zero(bytes) + (has_unit ? 10 * (static_cast<int>(unit) + 1) : 0);
  if (shift > 40) throw UsageError("--page-size: more than 1024G: " + text);
  return shift;
}

/// Reading, following where blocks lie, and counting are three steps, which go on beside each other.
void count_events(trace::Trace& trace, Summariser& summariser, unsigned jobs) {
  struct Place {
    trace::TraceBatch batch;
    PlaceChanges changes;
  };
  std::vector<Place> places(trace::Stages::places_for(jobs));
  trace::BatchReader& reader = trace.batches();
  PlaceFollower& follower = summariser.places();
  const auto follow = [&](Place& place) {
    place.changes.clear();
    trace.visit_batch(
        place.batch, [&](const Event& event, bool is_near) { follower.fetch(event, is_near); },
        [&](std::size_t i) { follower.follow(place.batch.events[i], place.changes); });
    if (place.batch.error) std::rethrow_exception(place.batch.error);
  };
  const auto count = [&](const Place& place) {
    summariser.begin_count(place.changes);
    for (const Event& event : place.batch.events) summariser.count(event);
  };
  trace::Stages stages({{true, [&](std::size_t i) { return reader.begin(places[i].batch); }, 0},
                        {true, [&](std::size_t i) { return reader.complete(places[i].batch); }, 0},
                        {true, [&](std::size_t i) { return follow(places[i]), true; }, 1},
                        {true, [&](std::size_t i) { return count(places[i]), true; }, 0}},
                       places.size());
  stages.run(jobs);
  trace.say_what_is_missing();
}

void summarise(const Options& options, int page_shift, std::optional<heap::Clock::Unit> axis) {
  trace::Trace trace(options);
  trace::SummaryOutput output(options);
  Summariser summariser(options.path, page_shift, trace.header().has_usable, trace.complaints(),
                        trace.header().touched_min());
  if (output.draws()) summariser.collect_plot(axis);
  count_events(trace, summariser, options.jobs);
  Summary summary = summariser.finish(trace.truncated());
  summary.pools_not_counted = trace.pools().not_counted();
  if (options.form != Options::Form::csv) name_blocks(summary, options);
  output.write(summary, {to_text, to_csv, to_picture});
  trace.complaints().say_count();
}

/// Whether the holders of pages are asked for. Throws UsageError where options do not go together.
bool asks_for_holders(const CommandLine& line) {
  line.refuse_together("by", {"summary", "plot", "clock", "annotate", "huge-pages", "leaks", "totals"});
  if (line.has("by")) return true;
  analysis::refuse_without(
      line, {"at", "sort", "inclusive", "top", "min", "focus", "ignore", "hide", "skip", "raw", "native", "debug-dir"},
      "--by");
  return false;
}

int run(const CommandLine& line) {
  const bool is_by_holder = asks_for_holders(line);
  Options options = trace::parse_options(tool, line, {"annotate", "huge-pages", "leaks", "totals"});
  if (!line.has("plot")) {
    for (const char* const form : {"json", "csv", "summary"}) line.refuse_together(form, {"clock"});
  }
  options.path = line.file();
  const int page_shift = parse_page_shift(line.value("page-size", "4K"));
  line.refuse_together("pool", {"plot", "clock", "annotate", "huge-pages", "leaks", "totals", "page-size"});
  if (is_by_holder) {
    report_holders(options, parse_holder_options(line, options.path), page_shift);
    return 0;
  }
  if (!options.pool.empty()) {
    summarise_pool(options);
    return 0;
  }
  if (options.summarises ||
      trace::prefers_summary(options, line, {"annotate", "clock", "huge-pages", "leaks", "totals"})) {
    summarise(options, page_shift, line.has("clock") ? std::optional(options.clock) : std::nullopt);
    return 0;
  }
  annotate_trace(options, page_shift, line.has("huge-pages"));
  return 0;
}

}  // namespace
}  // namespace cmt::overhead

int overhead_main(int argc, char** argv) {
  using namespace cmt::overhead;
  const auto value = cmt::command::Option::Takes::value;
  return cmt::command::run(argc, argv,
                           {.name = tool,
                            .version = CMT_VERSION,
                            .help = help_text,
                            .options = cmt::trace::known_options(cmt::analysis::group_options(
                                {{"huge-pages"}, {"page-size", value}, {"at", value}, {"pool", value}})),
                            .run = run,
                            .output = cmt::command::Tool::Output::all});
}
