// cmtwatch: a process's memory from outside. The first word names the subcommand.

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/suggest.h"

namespace cmt::watch {
namespace {

using command::CommandLine;
using command::Option;
using command::Tool;

std::string help_text() {
  std::string help = R"(Usage: cmtwatch COMMAND [OPTION]... [ARGUMENT]...

Watches the memory of processes from outside, through /proc.

)";
  for (const auto make : all_subcommands) {
    const Subcommand subcommand = make();
    const std::string name = subcommand.name;
    help += "  " + name + std::string(9 - name.size(), ' ') + subcommand.summary + "\n";
  }
  return help + R"(
'cmtwatch COMMAND --help' lists a command's options.

Examples:
  cmtwatch run -r -- make -j8
  cmtwatch get -w 4711
  cmtwatch record -o app.db 4711

  -h, --help     show this help
  -V, --version  show the version

Exit status: 0 done, 1 could not, 2 wrong use; run returns its command's.
)";
}

int refuse(const CommandLine& line) {
  std::vector<std::string> names;
  for (const auto make : all_subcommands) names.emplace_back(make().name);
  if (line.files().empty()) throw command::UsageError("a command is missing: " + command::list_of(names));
  const std::string& given = line.files()[0];
  throw command::UsageError("unknown command '" + given + "'" + command::did_you_mean(given, names));
}

std::optional<Subcommand> find_subcommand(std::string_view name) {
  for (const auto make : all_subcommands) {
    if (make().name == name) return make();
  }
  return std::nullopt;
}

/// The options that a help text lists: "  -o, --output=FILE  …", "  --trace[=FILE]  …", "  --bytes  …".
std::vector<Option> options_in(const std::string& help) {
  static const std::regex option_line("\n  (?:-(.), )?--([a-z-]+)(\\[?=)?");
  std::vector<Option> options;
  for (std::sregex_iterator each(help.begin(), help.end(), option_line), end; each != end; ++each) {
    const std::smatch& found = *each;
    const Option::Takes takes = !found[3].matched ? Option::Takes::nothing
                                : found[3] == "=" ? Option::Takes::value
                                                  : Option::Takes::value_or_nothing;
    options.push_back({found[2], takes, found[1].matched ? *found[1].first : '\0'});
  }
  return options;
}

/// A subcommand in the form of a tool. It borrows the texts of `subcommand`.
struct SubcommandTool {
  std::string name, help;
  Tool tool;

  SubcommandTool(const Subcommand& subcommand, bool launches)
      : name(std::string("cmtwatch ") + subcommand.name),
        help(subcommand.help + R"(  -h, --help         show this help
  -V, --version      show the version

Exit status: )" +
             subcommand.exit_status + "\n"),
        tool{name.c_str(),
             CMT_VERSION,
             help.c_str(),
             options_in(subcommand.help),
             launches ? subcommand.launch : subcommand.run,
             launches ? CommandLine::Operands::command : CommandLine::Operands::files,
             subcommand.help.find("  --json") != std::string::npos ? Tool::Output::form : Tool::Output::own} {}
  SubcommandTool(const SubcommandTool&) = delete;
  SubcommandTool& operator=(const SubcommandTool&) = delete;
};

int run(int count, char** words) {
  const auto subcommand = find_subcommand(count > 1 ? words[1] : "");
  if (!subcommand) {
    const std::string help = help_text();
    const bool is_unknown = count > 1 && words[1][0] != '-';
    return command::run(is_unknown ? 2 : count, words, {"cmtwatch", CMT_VERSION, help.c_str(), {}, refuse});
  }
  const bool launches = subcommand->launch && (!subcommand->run || std::any_of(words, words + count, [](auto* word) {
                          return std::string_view(word) == "--";
                        }));
  return command::run(count - 1, words + 1, SubcommandTool(*subcommand, launches).tool);
}

}  // namespace
}  // namespace cmt::watch

int cmtwatch_main(int argc, char** argv) { return cmt::watch::run(argc, argv); }
