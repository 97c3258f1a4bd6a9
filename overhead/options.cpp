#include "overhead/options.h"

#include <bit>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "toolkit/picture/picture_file.h"

namespace cmt::overhead {

const char help_text[] =
    R"(Usage: overhead [OPTION]... [FILE]

Annotates a trace, as text or .cmt, with where its blocks lie: behind every
call that makes or ends a block, the nearest live blocks on either side, the
gaps to them in bytes, its pages, and by how many pages the memory in use
grows or shrinks. A realloc ends one block and makes the next: both are told,
with "; " between them. The trace has to have addresses.

  malloc(20) = 81d2899a0<8>                     # prev 81d289980, gap 0, ...

Without FILE, or where FILE is -, the trace comes from standard input.

  --clock=UNIT   what ages are counted in: events (as lines, the default), time
                 (ns, where it was recorded), bytes (allocated meanwhile)
  --huge-pages   also by pages of 2 MiB
  --leaks        at the end a comment line for every block that is still alive
  --page-size=N  bytes of a page, a power of two; K, M and G may follow (4K)
  --totals       also how many bytes and blocks are alive after the call, and on
                 how many pages

Instead of annotating:

  --summary      live bytes, pages, gaps and pinned pages over time
  --json         the summary as JSON
  --csv          the summary's samples as comma-separated values
  --plot=FILE    a picture, as .svg, .html, .png or .pdf by FILE's ending: live
                 bytes and pages over time, and which addresses were live when;
                 with --summary, --json or --csv beside that

  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

using command::CommandLine;
using command::UsageError;

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

void check_combination(const CommandLine& line) {
  line.refuse_together("summary", {"clock", "huge-pages", "leaks", "totals"});
  line.refuse_together("json", {"csv", "clock", "huge-pages", "leaks", "totals"});
  line.refuse_together("plot", {"clock", "huge-pages", "leaks", "totals"});
  line.refuse_together("csv", {"clock", "huge-pages", "leaks", "totals"});
}

}  // namespace

std::vector<command::Option> known_options() {
  return {{"clock", command::Option::Takes::value},
          {"csv"},
          {"huge-pages"},
          {"json"},
          {"leaks"},
          {"page-size", command::Option::Takes::value},
          {"plot", command::Option::Takes::value},
          {"strict"},
          {"summary"},
          {"totals"}};
}

Options parse_options(const CommandLine& line) {
  check_combination(line);
  Options options;
  const bool summarises = line.has("summary") || line.has("json") || line.has("csv") || line.has("plot");
  if (summarises) options.command = Options::Command::summarise;
  options.path = line.file();
  options.annotation.clock = line.parsed("clock", "events", "events, time or bytes", heap::Clock::parse);
  options.annotation.page_shift = parse_page_shift(line.value("page-size", "4K"));
  options.annotation.huge_pages = line.has("huge-pages");
  options.annotation.totals = line.has("totals");
  options.leaks = line.has("leaks");
  options.strict = line.has("strict");
  options.plot = line.checked("plot", output::PictureFile::fault_of);
  options.prints = options.plot.empty() || line.has("summary") || line.has("json") || line.has("csv");
  if (line.has("json")) options.form = Options::Form::json;
  if (line.has("csv")) options.form = Options::Form::csv;
  return options;
}

}  // namespace cmt::overhead
