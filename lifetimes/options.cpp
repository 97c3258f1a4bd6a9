#include "lifetimes/options.h"

#include <initializer_list>

#include "toolkit/picture/picture_file.h"

namespace cmt::lifetimes {

const char help_text[] =
    R"(Usage: lifetimes [OPTION]... [FILE]
       lifetimes --merge [OPTION]... JSON...

Annotates a trace, as text or .cmt, with the lifetimes of its blocks: behind
every call that ends a block, how many bytes it had asked for and how many
events ago it was made.

  free(81d3b83a0<6656>)                         # 16 bytes, allocated 1 lines ago

Without FILE, or where FILE is -, the trace comes from standard input.

  --clock=UNIT   what ages are counted in: events (as lines, the default), time
                 (ns, where it was recorded), bytes (allocated meanwhile)
  --leaks        at the end a comment line for every block that is still alive
  --totals       also how many bytes and blocks are alive after the call

Instead of annotating:

  --summary      lifetimes by size, short-lived and temporary blocks, blocks
                 freed by another thread, reallocation chains, peak, leaks
  --counts       how often every pair occurs, in lines: count lifetime size
  --merge        adds summaries that --summary --json wrote
  --json         the summary as JSON
  --csv          the summary's sizes as comma-separated values
  --plot=FILE    a picture, as .svg, .html, .png or .pdf by FILE's ending: how
                 many blocks of which size lived how long; with --summary,
                 --json or --csv beside that

  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

using command::CommandLine;

void check_combination(const CommandLine& line) {
  line.refuse_together("merge", {"summary", "counts", "clock", "strict", "leaks", "totals"});
  line.refuse_together("counts", {"summary", "json", "csv", "leaks", "totals"});
  line.refuse_together("json", {"csv", "leaks", "totals"});
  line.refuse_together("csv", {"leaks", "totals"});
  line.refuse_together("summary", {"leaks", "totals"});
  line.refuse_together("plot", {"counts", "leaks", "totals"});
}

Options::Command command_of(const CommandLine& line) {
  if (line.has("merge")) return Options::Command::merge;
  if (line.has("counts")) return Options::Command::count;
  const bool summarises = line.has("summary") || line.has("json") || line.has("csv") || line.has("plot");
  return summarises ? Options::Command::summarise : Options::Command::annotate;
}

}  // namespace

std::vector<command::Option> known_options() {
  return {{"clock", command::Option::Takes::value}, {"counts"}, {"csv"},     {"json"},  {"leaks"}, {"merge"},
          {"plot", command::Option::Takes::value},  {"strict"}, {"summary"}, {"totals"}};
}

Options parse_options(const CommandLine& line) {
  check_combination(line);
  Options options;
  options.command = command_of(line);
  options.clock = line.parsed("clock", "events", "events, time or bytes", heap::Clock::parse);
  options.leaks = line.has("leaks");
  options.totals = line.has("totals");
  options.strict = line.has("strict");
  options.plot = line.checked("plot", output::PictureFile::fault_of);
  options.prints = options.plot.empty() || line.has("summary") || line.has("json") || line.has("csv");
  if (line.has("json")) options.form = Options::Form::json;
  if (line.has("csv")) options.form = Options::Form::csv;
  if (options.command != Options::Command::merge) {
    options.paths = {line.file()};
  } else if (!line.files().empty()) {
    options.paths = line.files();
  }
  return options;
}

}  // namespace cmt::lifetimes
