// cmtreport: one page, text or JSON about one or several traces: where the memory went, and who asked for it.

#include "cmtreport/input/read_traces.h"
#include "cmtreport/build/build.h"
#include "cmtreport/report/text.h"
#include "toolkit/allocations/groups/options.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"

namespace cmt::report {
namespace {

using command::CommandLine;

constexpr const char* tool = "cmtreport";

const char help_text[] =
    R"(Usage: cmtreport [OPTION]... [FILE]...

Says where the memory of a program went and which functions asked for it: what
stands out, in words with numbers, memory over time, and the tree of calls. Each
FILE is a trace, text or .cmt, of one process; several are added up. Without
FILE, or where FILE is -, a trace is read from standard input. Functions need a
trace with call stacks.

  --text         print what stands out, for people (the default)
  --json         print the whole report as JSON

  --focus=REGEX  only stacks with a function, file or library that matches
  --hide=REGEX   take functions that match out of the stacks
  --skip=REGEX   charge the callers of functions whose names match (xmalloc)
  --debug-dir=DIR
                 look there for separate debug files, too

  --strict       stop at the first defect of a trace; else defects are reported
                 and counted
  -h, --help     show this help
  --version      show the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

using allocations::pattern_option;

int run(const CommandLine& line) {
  line.refuse_together("text", {"json"});
  ReadSettings settings{.tool = tool, .strict = line.has("strict")};
  settings.functions = {.skipped = pattern_option(line, "skip"),
                        .hidden = pattern_option(line, "hide"),
                        .focus = pattern_option(line, "focus")};
  settings.debug_directories = line.values("debug-dir");
  std::vector<std::string> paths = line.files();
  if (paths.empty()) paths.emplace_back("-");
  for (const std::string& path : paths) {
    if (path == "-" && paths.size() > 1) throw command::UsageError("of several traces none can be standard input");
  }
  const Report report = build_report(read_traces(paths, settings));
  command::print(line.has("json") ? output::json_text(report) : to_text(report));
  return 0;
}

}  // namespace
}  // namespace cmt::report

int main(int argc, char** argv) {
  using namespace cmt::report;
  using Takes = cmt::command::Option::Takes;
  return cmt::command::run(argc, argv,
                           {tool,
                            CMT_VERSION,
                            help_text,
                            {{"text"},
                             {"json"},
                             {"focus", Takes::value},
                             {"hide", Takes::value},
                             {"skip", Takes::value},
                             {"debug-dir", Takes::values},
                             {"strict"}},
                            run});
}
