// cmtwatch: a process's memory from outside. The first word says which of its tools is meant.

#include <algorithm>
#include <string>
#include <string_view>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/commands/moment_options.h"
#include "cmtwatch/commands/options.h"
#include "cmtwatch/commands/record_options.h"
#include "cmtwatch/working_set/working_set.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {
namespace {

constexpr char help_text[] =
    R"(Usage: cmtwatch COMMAND [OPTION]... [ARGUMENT]...

Watches the memory of processes from outside, through /proc.

  run      run a command and tell the most memory that it had at once
  get      tell how much memory a process has, once or again and again
  wss      tell the working set: what a process touches in an interval
  record   record processes, mapping by mapping, in an SQLite file
  peak     tell what the memory of a recording was made of when it was most
  show     the same of another moment
  play     show a recording moment by moment
  import   make a recording of smaps files
  export   write everything of a recording as JSON
  compare  put several runs into one table and one picture

'cmtwatch COMMAND --help' tells more.

  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use; run passes its command's on.
)";

using command::CommandLine;
using command::Tool;

int refuse(const CommandLine& line) {
  if (line.files().empty())
    throw command::UsageError(
        "a command is missing: run, get, wss, record, peak, show, play, import, export or compare");
  throw command::UsageError("unknown command '" + line.files()[0] + "'");
}

/// A command to record stands behind two dashes.
Tool record_tool(int count, char** words) {
  const bool launches =
      std::any_of(words, words + count, [](const char* word) { return std::string_view(word) == "--"; });
  return {"cmtwatch record",
          CMT_VERSION,
          record_help,
          record_options(),
          launches ? record_launched : record,
          launches ? CommandLine::Operands::command : CommandLine::Operands::files};
}

Tool tool_named(std::string_view word, int count, char** words) {
  if (word == "run") {
    return {"cmtwatch run", CMT_VERSION, run_help, run_options(), run, CommandLine::Operands::command};
  }
  if (word == "get") return {"cmtwatch get", CMT_VERSION, get_help, get_options(), get};
  if (word == "wss") return {"cmtwatch wss", CMT_VERSION, wss_help, wss_options(), wss};
  if (word == "peak") return {"cmtwatch peak", CMT_VERSION, peak_help, peak_options(), peak};
  if (word == "show") return {"cmtwatch show", CMT_VERSION, show_help, show_options(), show};
  if (word == "play") return {"cmtwatch play", CMT_VERSION, play_help, play_options(), play};
  if (word == "import") return {"cmtwatch import", CMT_VERSION, import_help, import_options(), import_smaps};
  if (word == "export") return {"cmtwatch export", CMT_VERSION, export_help, export_options(), export_recording};
  if (word == "compare") return {"cmtwatch compare", CMT_VERSION, compare_help, compare_options(), compare};
  if (word == "record") return record_tool(count, words);
  return {"cmtwatch", CMT_VERSION, help_text, {}, refuse};
}

}  // namespace
}  // namespace cmt::watch

int main(int argc, char** argv) {
  const cmt::command::Tool tool = cmt::watch::tool_named(argc > 1 ? argv[1] : "", argc, argv);
  const int taken = std::string_view(tool.name) == "cmtwatch" ? 0 : 1;
  return cmt::command::run(argc - taken, argv + taken, tool);
}
