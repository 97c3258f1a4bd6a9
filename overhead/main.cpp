// overhead: where blocks lie. Annotates a trace, or summarises it.

#include <bit>
#include <charconv>
#include <optional>
#include <string_view>

#include "overhead/annotate.h"
#include "overhead/summarise.h"
#include "overhead/summary.h"
#include "toolkit/annotate/trace_tool.h"
#include "toolkit/command/command_line.h"

namespace cmt::overhead {
namespace {

using annotate::Options;
using command::CommandLine;
using command::UsageError;

constexpr const char* tool = "overhead";

const char help_text[] =
    R"(Usage: overhead [OPTION]... [FILE]

Annotates a trace, text or .cmt, with where its blocks lie. Each line that makes
or ends a block gets the nearest live blocks on either side, the gaps to them in
bytes, the block's pages, and by how many pages the memory in use grows or
shrinks. A realloc has both, separated by "; ". The trace must have addresses.

  malloc(20) = 81d2899a0<8>                     # prev 81d289980, gap 0, ...

Without FILE, or where FILE is -, the trace is read from standard input.

  --clock=UNIT   the unit of ages: events (called lines; the default), time
                 (where it was recorded), bytes (allocated meanwhile); with
                 --plot the unit of the picture's x axis (else time where it was
                 recorded)
  --huge-pages   also count pages of 2 MiB
  --leaks        at the end, add a comment line for every block still live
  --page-size=N  bytes of a page, a power of two; K, M or G may follow (4K)
  --totals       also show the live bytes, blocks and pages after the event

Instead of annotating:

  --summary      print live bytes, pages, gaps and pinned pages over time, and
                 which blocks hold the pages
  --json         print the summary as JSON
  --csv          print the summary's samples as comma-separated values
  --plot=FILE    draw live bytes and pages over time, and which addresses were
                 live when; FILE ends in .svg, .html, .png or .pdf; the summary
                 is printed too with --summary, --json or --csv

  --strict       stop at the first defect of the trace; else defects are
                 reported and counted
  -h, --help     show this help
  --version      show the version

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

void summarise(const Options& options, int page_shift, std::optional<heap::Clock::Unit> axis) {
  annotate::Trace trace(options);
  annotate::SummaryOutput output(options);
  Summariser summariser(options.path, page_shift, trace.header().has_usable, trace.complaints(),
                        trace.header().touched_min());
  if (output.draws()) summariser.collect_plot(axis);
  trace.for_each([&](const Event& event, std::size_t) { summariser.count_event(event); });
  output.write(summariser.finish(trace.truncated()));
  trace.complaints().say_count();
}

int run(const CommandLine& line) {
  Options options = annotate::parse_options(tool, line, {"huge-pages", "leaks", "totals"});
  if (!line.has("plot")) {
    for (const char* const form : {"json", "csv", "summary"}) line.refuse_together(form, {"clock"});
  }
  options.path = line.file();
  const int page_shift = parse_page_shift(line.value("page-size", "4K"));
  if (options.summarises) {
    summarise(options, page_shift, line.has("clock") ? std::optional(options.clock) : std::nullopt);
    return 0;
  }
  annotate_trace(options, page_shift, line.has("huge-pages"));
  return 0;
}

}  // namespace
}  // namespace cmt::overhead

int main(int argc, char** argv) {
  using namespace cmt::overhead;
  const auto value = cmt::command::Option::Takes::value;
  return cmt::command::run(
      argc, argv,
      {tool, CMT_VERSION, help_text, cmt::annotate::known_options({{"huge-pages"}, {"page-size", value}}), run});
}
