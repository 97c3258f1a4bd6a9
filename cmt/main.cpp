// cmt: one name for all tools. Each command starts a tool, which is in the folder of this program. The tool gets the
// words that follow the command, after those of the table.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/command/command_line.h"
#include "toolkit/command/suggest.h"
#include "toolkit/process/proc_mount.h"

namespace cmt::driver {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// One command. To add one, add a line to the table and to man/cmt.1.
struct Command {
  std::string name;
  std::string tool;
  std::string summary;
  Words words = {};   ///< the tool's first arguments
  Words unless = {};  ///< options in place of `words`: where one of them is given, `words` are left out
};

const std::vector<Command> commands{
    {"record", "cmttrace", "run a program and record its calls, or attach to one"},
    {"report", "cmtreport", "where the memory went, as text or as a page"},
    {"diff", "cmtreport", "what changed between two traces", {"--diff", ""}},  // both traces are operands
    {"who",
     "lifetimes",
     "who allocates: by function, caller, line, library, thread",
     {"--by=function"},
     {"--by", "--folded", "--pprof", "--speedscope"}},
    {"pages", "overhead", "which functions hold the pages", {"--by=function"}, {"--by"}},
    {"replay", "cmtreplay", "the same calls on other allocators: time and memory"},
    {"tune", "cmtreplay", "which allocator and settings are best for a program", {"--tune"}, {"--tune"}},
    {"verify", "cmtreplay", "check an allocator: alignment, overlap, contents", {"--verify"}},
    {"watch", "cmtwatch", "the memory of processes from outside"},
    {"explain", "cmtwatch", "why a process is so big, and what gives memory back", {"explain"}},
    {"convert", "trace2cmt", "convert, check, cut and anonymise traces"},
    {"info", "trace2cmt", "the contents of a trace", {"--info"}},
};

std::string help_text() {
  std::string help = R"(Usage: cmt COMMAND [OPTION]... [ARGUMENT]...

Records what a program asks of malloc, shows where the memory goes, and replays
the same calls on any allocator. Five lines that most people need:

  cmt record -o app.cmt -- app                      record a program
  cmt report -o app.html app.cmt                    see it in a browser
  cmt diff before.cmt after.cmt                     compare two runs or builds
  cmt replay --alloc=libc --alloc=jemalloc app.cmt  compare allocators
  cmt explain 4711                                  why a process is so big

Each command is a tool with a name of its own. Its --help lists its options:

)";
  for (const Command& command : commands) {
    std::string line = "  " + command.name + std::string(9 - command.name.size(), ' ') + command.summary;
    line.resize(std::max<std::size_t>(line.size() + 1, 70), ' ');
    help += line + command.tool + "\n";
  }
  return help + R"(  help     show the manual page of a command

  -h, --help     show this help
  -V, --version  show the version

Exit status: the tool's; 2 wrong use, 126 or 127 if the tool cannot be started.
)";
}

const Command* find_command(std::string_view name) {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const auto& each) { return each.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& name) {
  Words names{"help"};
  for (const Command& each : commands) {
    if (each.tool == name) throw command::UsageError("unknown command '" + name + "'; '" + name + "' is a tool itself");
    names.push_back(each.name);
  }
  throw command::UsageError("unknown command '" + name + "'" + command::did_you_mean(name, names));
}

fs::path own_folder() { return process::own_program().parent_path(); }

/// The tool beside this program; in a build, in the folder of its own.
fs::path path_of(const std::string& tool) {
  const fs::path installed = own_folder() / tool, built = own_folder() / ".." / tool / tool;
  return !fs::exists(installed) && fs::is_regular_file(built) ? built : installed;
}

/// Becomes the tool. Returns the exit status if that fails.
int start(const std::string& tool, Words words) {
  const std::string path = path_of(tool);
  words.insert(words.begin(), tool);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  const int error = errno;
  command::complain("cmt", path + ": " + std::strerror(error));
  return error == ENOENT ? command::status_not_found : command::status_cannot_start;
}

/// Whether a word before "--" is one of these options, with a value or without.
bool has_any(const Words& words, const Words& options) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, [&](const std::string& word) {
    return std::find(options.begin(), options.end(), word.substr(0, word.find('='))) != options.end();
  });
}

int start(const Command& command, const Words& given) {
  Words words = has_any(given, command.unless) ? Words() : command.words;
  words.insert(words.end(), given.begin(), given.end());
  return start(command.tool, words);
}

/// Becomes man(1) with the page that was installed together with the tool. Without man(1) or the page, the tool shows
/// the --help of the command, which is that of a subcommand of cmtwatch where it starts one. Returns the exit status if
/// that fails.
int show_page(const Command& command) {
  const std::string& tool = command.tool;
  for (const char* const ending : {".1", ".1.gz"}) {
    const std::string page = own_folder() / CMT_PAGES_FROM_BIN / (tool + ending);
    if (fs::exists(page)) execlp("man", "man", page.c_str(), nullptr);
  }
  const bool has_word = !command.words.empty() && command.words[0][0] != '-';
  return start(tool, has_word ? Words{command.words[0], "--help"} : Words{"--help"});
}

/// The command whose page `cmt help NAME` shows, or null.
const Command* command_of_page(std::string_view name) {
  static const Command own{"cmt", "cmt", ""};
  return name == "cmt" || name == "help" ? &own : find_command(name);
}

/// For words that start no tool: shows the help, or throws UsageError.
int run(const command::CommandLine& line) {
  const Words& words = line.files();
  if (words.empty()) return command::print(help_text()), 2;
  if (words[0] != "help") refuse(words[0]);
  if (words.size() == 1) return command::print(help_text()), 0;
  if (words.size() > 2) throw command::UsageError("help is about one command, not also '" + words[2] + "'");
  refuse(words[1]);
}

/// Becomes a tool or man(1). This is apart from command::run(), which ignores signals that a tool would inherit as
/// ignored. Returns nothing if the words name no command.
std::optional<int> start_tool(const Words& words) {
  if (words.empty()) return std::nullopt;
  if (const Command* const command = find_command(words[0])) return start(*command, {words.begin() + 1, words.end()});
  const Command* const command = words.size() == 2 && words[0] == "help" ? command_of_page(words[1]) : nullptr;
  return command != nullptr ? std::optional(show_page(*command)) : std::nullopt;
}

}  // namespace
}  // namespace cmt::driver

int main(int argc, char** argv) {
  using namespace cmt::driver;
  try {
    if (const auto status = start_tool(Words(argv + 1, argv + argc))) return *status;
  } catch (const std::exception& error) {
    cmt::command::complain("cmt", error.what());
    return cmt::command::status_cannot_start;
  }
  const std::string help = help_text();
  const bool is_unknown = argc > 1 && argv[1][0] != '-' && argv[1] != std::string_view("help");
  return cmt::command::run(is_unknown ? 2 : argc, argv, {"cmt", CMT_VERSION, help.c_str(), {}, run});
}
