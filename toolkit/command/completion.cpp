// Completion of command lines, as a script for the user's shell. The options are those that the tool parses; what an
// option takes, and what it does, is read from the help text, which a test compares with the table anyway. So neither
// has a second list to keep:
//
//   --by=WHAT      a table by function, caller (functions with the tree of their callers), line or library, …
//
//   bash   --by) _cmt_words function caller line library thread size phase
//   zsh    '--by=[a table by function]:WHAT:(function caller line library thread size phase)'
//   fish   complete -c lifetimes -l by -x -a 'function caller line library thread size phase' -d 'a table by function'
//
// The placeholder says what is completed: a name of files (FILE, OUT, …), of folders (DIR), the words of "yes|no", or
// the words that the description lists (WHAT, FORMAT, …). All others are the user's. The build runs each tool once for
// each shell, and `cmake --install` puts the scripts where the shells look for them.

#include "toolkit/command/completion.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

namespace cmt::command {
namespace {

enum class Completes { nothing, files, folders, words };

/// An option, with what its lines in the help text tell.
struct DescribedOption {
  Option option;
  std::string placeholder{};
  std::string summary{};
  Completes completes = Completes::nothing;
  std::vector<std::string> words{};
};

/// What the words after the options are.
enum class Operand { files, processes, command, nothing };

struct DescribedTool {
  std::string name;
  std::vector<DescribedOption> options;
  Operand operand = Operand::files;
};

/// Without what is in parentheses, with single blanks.
std::string plain(const std::string& text) {
  static const std::regex aside(" ?\\([^)]*\\)"), blanks("\\s+");
  return std::regex_replace(std::regex_replace(text, blanks, " "), aside, "");
}

/// The first sentence of a description.
std::string first_sentence(const std::string& description) {
  const std::string text = plain(description);
  return text.substr(0, text.find(". "));
}

/// The words that a description lists: of "a form: cmt (the default), text or rep; so" cmt, text and rep.
std::vector<std::string> listed_words(const std::string& description) {
  static const std::regex last_comma(",? (or|and) "), list("([a-z][a-z0-9-]*)((, [a-z][a-z0-9-]*)+)"),
      word("[a-z0-9-]+");
  const std::string text = std::regex_replace(first_sentence(description), last_comma, ", ");
  std::vector<std::string> words;
  for (std::sregex_iterator each(text.begin(), text.end(), list), end; each != end; ++each) {
    const std::string found = each->str(), rest = each->suffix();
    for (std::sregex_iterator at(found.begin(), found.end(), word); at != end; ++at) words.push_back(at->str());
    // "library, in a trace": the last word begins a phrase.
    if (rest.starts_with(" ")) words.pop_back();
  }
  return words;
}

/// Of "yes|no" yes and no, of "SIZE|auto|off" auto and off.
std::vector<std::string> alternatives(const std::string& placeholder) {
  std::vector<std::string> words;
  static const std::regex word("[^|]+");
  if (placeholder.find('|') == placeholder.npos) return words;
  for (std::sregex_iterator at(placeholder.begin(), placeholder.end(), word), end; at != end; ++at)
    if (std::islower(static_cast<unsigned char>(at->str()[0])) != 0) words.push_back(at->str());
  return words;
}

/// The beginning of a description, as a phrase of one line.
std::string summary_of(const std::string& description) {
  static const std::regex end_of_phrase("[;:]( |$)");
  constexpr std::size_t length_max = 60;
  std::string phrase = first_sentence(description);
  std::smatch found;
  if (std::regex_search(phrase, found, end_of_phrase)) phrase.resize(static_cast<std::size_t>(found.position()));
  if (phrase.size() <= length_max) return phrase;
  const std::size_t comma = phrase.rfind(", ", length_max);
  return phrase.substr(0, comma != phrase.npos ? comma : phrase.rfind(' ', length_max));
}

void complete_value(DescribedOption& described, const std::string& description) {
  static const std::set<std::string> files{"FILE", "OUT", "FIFO", "RINGS", "TRACE", "BEFORE", "OLD"};
  static const std::set<std::string> lists{"WHAT",   "FIGURE", "UNIT",   "FORM", "FORMAT",
                                           "METRIC", "METHOD", "MOMENT", "KIND"};
  const std::string first_word = described.placeholder.substr(0, described.placeholder.find_first_of(".,:"));
  described.words = alternatives(described.placeholder);
  if (lists.contains(first_word)) described.words = listed_words(description);
  if (!described.words.empty()) described.completes = Completes::words;
  if (files.contains(first_word)) described.completes = Completes::files;
  if (first_word == "DIR") described.completes = Completes::folders;
}

/// By the name of the option: what follows it in the help text, "=FILE  the file's name …" with the lines below it.
std::map<std::string, std::string> descriptions_in(const std::string& help) {
  static const std::regex line("\n +(?:-., )?--([a-z-]+)(\\[?=[^ \n]*| |\n)([^\n]*(?:\n {10,}[^\n]*)*)");
  std::map<std::string, std::string> found;
  for (std::sregex_iterator each(help.begin(), help.end(), line), end; each != end; ++each)
    found.emplace((*each)[1], (*each)[2].str() + " " + (*each)[3].str());
  return found;
}

Operand operand_of(const Tool& tool) {
  if (tool.operands == CommandLine::Operands::command) return Operand::command;
  const std::string help = tool.help, usage = help.substr(0, help.find("\n\n"));
  if (usage.find("COMMAND") != usage.npos && usage.find("PID") == usage.npos) return Operand::command;
  if (usage.find("PID") != usage.npos) return Operand::processes;
  return Operand::files;
}

DescribedTool describe(const Tool& tool) {
  DescribedTool described{.name = tool.name, .options = {}, .operand = operand_of(tool)};
  const auto descriptions = descriptions_in(tool.help);
  std::vector<Option> options = tool.options;
  options.push_back({.name = "help", .letter = 'h'});
  options.push_back({.name = "version"});
  for (const Option& option : options) {
    DescribedOption one{.option = option};
    if (const auto found = descriptions.find(option.name); found != descriptions.end()) {
      static const std::regex value("^\\[?=([^ \\]\n]*)\\]?");
      std::smatch match;
      std::string description = found->second;
      if (std::regex_search(description, match, value)) {
        one.placeholder = match[1];
        description = match.suffix();
      }
      description.erase(0, description.find_first_not_of(" \n"));
      one.summary = summary_of(description);
      if (option.takes != Option::Takes::nothing) complete_value(one, description);
    }
    described.options.push_back(std::move(one));
  }
  return described;
}

bool needs_value(const Option& option) {
  return option.takes == Option::Takes::value || option.takes == Option::Takes::values;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// For a string in single quotes of a shell; `escaped` are preceded by a backslash.
std::string quoted(const std::string& text, std::string_view escaped = "") {
  std::string result;
  for (const char c : text) {
    if (escaped.find(c) != escaped.npos) result += '\\';
    result += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return result;
}

/// "_cmtwatch_run"
std::string function_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return "_" + name;
}

// bash. A word ends at each of COMP_WORDBREAKS, "=" among them: "--by=fun" is three words.

const char* bash_operands(Operand operand) {
  switch (operand) {
    case Operand::files:
      return "_cmt_complete -f";
    case Operand::processes:
      return "_cmt_complete -W \"$(cd /proc && printf '%s ' [0-9]*)\"";
    case Operand::command:
      return "_cmt_complete -A command";
    case Operand::nothing:
      break;
  }
  return ":";
}

/// The case of a subcommand, or of a tool without: what comes after each option, and what else.
std::string bash_case(const DescribedTool& tool) {
  std::string cases, names, letters;
  for (const DescribedOption& each : tool.options) {
    const std::string name = "--" + each.option.name;
    names += " " + name + (needs_value(each.option) ? "=" : "");
    if (each.option.takes == Option::Takes::nothing) continue;
    // After a blank comes a value only where there has to be one.
    std::string pattern = name + "=";
    if (needs_value(each.option)) pattern += " | " + name;
    if (needs_value(each.option) && each.option.letter != '\0') pattern += std::string(" | -") + each.option.letter;
    const std::string action = each.completes == Completes::words
                                   ? "_cmt_complete -W '" + quoted(joined(each.words)) + "'"
                               : each.completes == Completes::files   ? "_cmt_complete -f"
                               : each.completes == Completes::folders ? "_cmt_complete -d"
                                                                      : ":";
    cases += "    " + pattern + ") " + action + "; return ;;\n";
  }
  return "  case $option in\n" + cases + "  esac\n  if [[ $word == -* ]]; then _cmt_complete -W '" + names.substr(1) +
         "'; else " + bash_operands(tool.operand) + "; fi\n";
}

/// A launcher's command line from the command on is completed as if it stood alone, where bash-completion is loaded.
std::string bash_launcher(const DescribedTool& tool, int first) {
  std::string with_values;
  for (const DescribedOption& each : tool.options) {
    if (!needs_value(each.option)) continue;
    with_values += (with_values.empty() ? "--" : " | --") + each.option.name;
    if (each.option.letter != '\0') with_values += std::string(" | -") + each.option.letter;
  }
  return "  local at\n  for ((at = " + std::to_string(first) +
         "; at < COMP_CWORD; ++at)); do\n    case ${COMP_WORDS[at]} in\n      --) ((++at)); break ;;\n      " +
         with_values +
         ") [[ ${COMP_WORDS[at + 1]} == = ]] && ((++at)); ((++at)) ;;\n      =) ((++at)) ;;\n      -*) ;;\n      *) "
         "break ;;\n"
         "    esac\n  done\n"
         "  if ((at < COMP_CWORD)); then\n"
         "    if declare -F _command_offset >/dev/null; then _command_offset $at; else _cmt_complete -f; fi\n    "
         "return\n  fi\n";
}

std::string bash_body(const DescribedTool& tool, int first) {
  return (tool.operand == Operand::command ? bash_launcher(tool, first) : "") + bash_case(tool);
}

constexpr std::string_view bash_head = R"(
# The completions of $word, of the kind that compgen knows.
_cmt_complete() {
  mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
  [[ $1 == -f || $1 == -d ]] && compopt -o filenames
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == --*= ]] && compopt -o nospace
  return 0
}

)";

constexpr std::string_view bash_words = R"(  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $word == = ]]; then
    word= option+==
  elif [[ $option == = ]] && ((COMP_CWORD > 2)); then
    option=${COMP_WORDS[COMP_CWORD - 2]}=
  fi
)";

std::string bash_script(const DescribedTool& tool, const std::vector<DescribedTool>& subcommands,
                        const std::vector<std::string>& names) {
  std::string script(bash_head);
  for (const DescribedTool& each : subcommands)
    script += function_name(each.name) + "() {\n" + std::string(bash_words) + bash_body(each, 2) + "}\n\n";
  script += function_name(tool.name) + "() {\n";
  if (subcommands.empty()) {
    script += std::string(bash_words) + bash_body(tool, 1);
  } else {
    script += "  local word=${COMP_WORDS[COMP_CWORD]}\n  if ((COMP_CWORD == 1)); then\n    _cmt_complete -W '" +
              joined(names) + " --help --version'\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n    ";
    for (std::size_t i = 0; i < names.size(); ++i) script += (i == 0 ? "" : " | ") + names[i];
    script += ") _" + tool.name + "_${COMP_WORDS[1]} ;;\n  esac\n";
  }
  return script + "}\n\ncomplete -F " + function_name(tool.name) + " " + tool.name + "\n";
}

// zsh: _arguments knows of options and their values; a line for each.

std::string zsh_action(const DescribedOption& option) {
  switch (option.completes) {
    case Completes::words:
      return "(" + joined(option.words) + ")";
    case Completes::files:
      return "_files";
    case Completes::folders:
      return "_files -/";
    case Completes::nothing:
      break;
  }
  return " ";
}

std::string zsh_option(const DescribedOption& each) {
  const Option& option = each.option;
  const std::string about = "[" + quoted(each.summary, "[]:\\") + "]";
  const std::string value = quoted(each.placeholder, "[]:\\") + ":" + zsh_action(each);
  const std::string repeats = option.takes == Option::Takes::values ? "*" : "";
  std::string line;
  const auto append = [&](const std::string& name, const std::string& joint) {
    line += "  '" + repeats + name;
    if (needs_value(option)) line += joint + about + ":" + value;
    if (option.takes == Option::Takes::value_or_nothing) line += "=-" + about + "::" + value;
    if (option.takes == Option::Takes::nothing) line += about;
    line += "' \\\n";
  };
  append("--" + option.name, "=");
  if (option.letter != '\0') append(std::string("-") + option.letter, "");
  return line;
}

std::string zsh_operands(Operand operand) {
  switch (operand) {
    case Operand::files:
      return "  '*:file:_files'\n";
    case Operand::processes:
      return "  '*:process:_pids'\n";
    case Operand::command:
      return "  '(-):command:_command_names -e' '*::argument:_normal'\n";
    case Operand::nothing:
      break;
  }
  return "\n";
}

std::string zsh_arguments(const DescribedTool& tool) {
  const bool launches = tool.operand == Operand::command;
  std::string text = std::string("  _arguments -s ") + (launches ? "-A '-*' " : "") + "-S \\\n";
  for (const DescribedOption& option : tool.options) text += zsh_option(option);
  return text + zsh_operands(tool.operand);
}

std::string zsh_script(const DescribedTool& tool, const std::vector<DescribedTool>& subcommands,
                       const std::vector<std::string>& names) {
  std::string script = "\n";
  if (subcommands.empty()) {
    script += function_name(tool.name) + "() {\n" + zsh_arguments(tool) + "}\n\n";
  } else {
    for (const DescribedTool& each : subcommands)
      script += function_name(each.name) + "() {\n" + zsh_arguments(each) + "}\n\n";
    script += function_name(tool.name) + "() {\n  if ((CURRENT == 2)); then\n    compadd -- " + joined(names) +
              " --help --version\n    return\n  fi\n  local name=_" + tool.name +
              "_$words[2]\n  shift words\n  ((CURRENT--))\n  (($+functions[$name])) && $name\n}\n\n";
  }
  return script + function_name(tool.name) + " \"$@\"\n";
}

// fish: a command for each option.

std::string fish_option(const std::string& tool, const std::string& condition, const DescribedOption& each) {
  std::string line = "complete -c " + tool + condition + " -l " + each.option.name;
  if (each.option.letter != '\0') line += std::string(" -s ") + each.option.letter;
  if (needs_value(each.option)) {
    if (each.completes == Completes::words) line += " -x -a '" + quoted(joined(each.words), "\\") + "'";
    if (each.completes == Completes::files) line += " -r -F";
    if (each.completes == Completes::folders) line += " -x -a '(__fish_complete_directories)'";
    if (each.completes == Completes::nothing) line += " -x";
  }
  if (!each.summary.empty()) line += " -d '" + quoted(each.summary, "\\") + "'";
  return line + "\n";
}

std::string fish_lines(const std::string& command, const std::string& condition, const DescribedTool& tool) {
  std::string lines;
  for (const DescribedOption& option : tool.options) lines += fish_option(command, condition, option);
  if (tool.operand == Operand::command)
    lines += "complete -c " + command + condition + " -x -a '(__fish_complete_subcommand)'\n";
  if (tool.operand == Operand::processes)
    lines += "complete -c " + command + condition + " -x -a '(__fish_complete_pids)'\n";
  return lines;
}

std::string fish_script(const DescribedTool& tool, const std::vector<DescribedTool>& subcommands,
                        const std::vector<std::string>& names) {
  if (subcommands.empty()) return "\n" + fish_lines(tool.name, "", tool);
  const std::string first = " -n '__fish_use_subcommand'";
  std::string script = "\ncomplete -c " + tool.name + first + " -x -a '" + joined(names) + "'\n";
  script += fish_lines(tool.name, first, {.name = tool.name, .options = tool.options, .operand = Operand::nothing});
  for (std::size_t i = 0; i < names.size(); ++i)
    script += fish_lines(tool.name, " -n '__fish_seen_subcommand_from " + names[i] + "'", subcommands[i]);
  return script;
}

}  // namespace

std::string completion_script(std::string_view shell, const Tool& tool, const std::vector<Tool>& subcommands) {
  const DescribedTool described = describe(tool);
  std::vector<DescribedTool> below;
  std::vector<std::string> names;
  for (const Tool& each : subcommands) {
    below.push_back(describe(each));
    names.push_back(below.back().name.substr(described.name.size() + 1));
  }
  const std::string made_by = "made by " + described.name + " --completion=" + std::string(shell) + ".\n";
  if (shell == "bash")
    return "# Completion of " + described.name + " in bash, " + made_by + bash_script(described, below, names);
  if (shell == "zsh")
    return "#compdef " + described.name + "\n# Completion in zsh, " + made_by + zsh_script(described, below, names);
  if (shell == "fish")
    return "# Completion of " + described.name + " in fish, " + made_by + fish_script(described, below, names);
  throw UsageError("--completion is bash, zsh or fish, not '" + std::string(shell) + "'");
}

}  // namespace cmt::command
