// The one file that includes Boost.Program_options: a translation unit with it costs 4.4 s. Its rendering of help is
// not used; a tool's help is written by hand, and a test compares it with what is parsed.

#include "toolkit/command/command_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <new>
#include <system_error>
#include <utility>

#include "libcmt/text/utf8.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/command/output_path.h"
#include "toolkit/command/suggest.h"
#include "toolkit/files/output_file.h"
#include "toolkit/output/style.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::command {
namespace {

namespace po = boost::program_options;

po::options_description describe(const std::vector<Option>& options) {
  po::options_description described;
  described.add_options()("help,h", "")("version,V", "")("file", po::value<std::vector<std::string>>());
  for (const Option& option : options) {
    const std::string names = option.letter == '\0' ? option.name : option.name + "," + option.letter;
    if (option.takes == Option::Takes::nothing)
      described.add_options()(names.c_str(), "");
    else if (option.takes == Option::Takes::value_or_nothing)
      described.add_options()(names.c_str(), po::value<std::string>()->implicit_value(""), "");
    else
      described.add_options()(names.c_str(), po::value<std::vector<std::string>>(), "");
  }
  return described;
}

/// A byte within $'...' of a shell.
std::string escaped_for_shell(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\'' || c == '\\') return {'\\', c};
  if (c >= ' ' && c <= '~') return {c};
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
          static_cast<char>('0' + (byte & 7))};
}

/// Whether a word is an option whose value is the word after it.
bool takes_next_word(std::string_view word, const std::vector<Option>& options) {
  for (const Option& option : options) {
    if (option.takes == Option::Takes::nothing || option.takes == Option::Takes::value_or_nothing) continue;
    if (word == "--" + option.name) return true;
    if (option.letter != '\0' && word.size() == 2 && word[0] == '-' && word[1] == option.letter) return true;
  }
  return false;
}

/// The option of a word like "--trace", whose optional value is missing. The parser would take the next word for the
/// value. Null if the word is no such option.
const Option* lone_option(std::string_view word, const std::vector<Option>& options) {
  for (const Option& option : options) {
    if (option.takes == Option::Takes::value_or_nothing && word == "--" + option.name) return &option;
  }
  return nullptr;
}

/// The index of the command's first word: after `--`, or the first that is neither an option nor the value of one.
int command_begin(int count, const char* const* arguments, const std::vector<Option>& options) {
  for (int at = 1; at < count; ++at) {
    const std::string_view word = arguments[at];
    if (word == "--") return at + 1;
    if (word.size() < 2 || word[0] != '-') return at;
    if (takes_next_word(word, options)) ++at;
  }
  return count;
}

/// The message for a word that names no option, such as "--sumary=x".
std::string unknown_option(std::string_view word, const std::vector<Option>& options) {
  std::vector<std::string> names{"help", "version"};
  for (const Option& option : options) names.push_back(option.name);
  const std::string given(word.substr(0, word.find('=')));
  std::string message = "unrecognised option '" + std::string(word) + "'";
  const std::size_t dashes = std::min(given.find_first_not_of('-'), given.size());
  if (given.size() > 2) message += did_you_mean(given.substr(dashes), names, "--");
  return message;
}

/// The words of a list such as "events, time or bytes". Empty if the text is no list of words.
std::vector<std::string> words_of_list(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t end = std::min({list.find(", "), list.find(" or "), list.size()});
    words.emplace_back(list.substr(0, end));
    if (words.back().empty() || words.back().find(' ') != std::string::npos) return {};
    list.remove_prefix(std::min(list.size(), end + (list.substr(end).starts_with(", ") ? 2 : 4)));
  }
  return words;
}

/// Dies by the signal, so that a shell sees what ended the tool.
int end_by_signal(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  return 128 + signal;
}

/// Runs a tool whose standard output goes to a file.
int run_into_file(const CommandLine& line, const Tool& tool) {
  refuse_input_as_output(line.standard_output(), line.files());
  files::OutputFile file(line.standard_output());
  if (dup2(file.fd(), STDOUT_FILENO) < 0)
    throw std::system_error(errno, std::generic_category(), line.standard_output());
  int status = 0;
  try {
    status = tool.run(line);
  } catch (const std::system_error& error) {
    files::throw_with_name(error, line.standard_output());
  }
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), line.standard_output());
  file.commit();
  return status;
}

int run_unguarded(int count, const char* const* arguments, const Tool& tool) {
  CommandLine line(count, arguments, tool.options, tool.operands);
  if (line.has("help")) return print(tool.help), 0;
  if (line.has("version")) return print(std::string(tool.name) + " " + tool.version + "\n"), 0;
  if (tool.output != Tool::Output::own)
    line.choose_output(tool.options, tool.output != Tool::Output::form, tool.output == Tool::Output::all);
  if (std::any_of(tool.options.begin(), tool.options.end(), [](const Option& one) { return one.name == "color"; })) {
    const std::string when = line.word("color", {"auto", "always", "never"});
    const bool goes_to_terminal = line.standard_output().empty() && terminal::output_has_styles();
    output::use_bold(when == "always" || (when == "auto" && goes_to_terminal));
  }
  return line.standard_output().empty() ? tool.run(line) : run_into_file(line, tool);
}

const std::map<std::string_view, double> duration_units{{"ns", 1},  {"us", 1e3},   {"ms", 1e6},
                                                        {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};

/// Opens the standard streams that are closed, so that no file of the tool takes their place. Writes to them fail as
/// before. A started program has them closed.
void hold_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view given(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const auto found = duration_units.find(given.empty() && number == 0 ? "ns" : given);
  if (found == duration_units.end() || number * found->second >= 9e18) return std::nullopt;
  return std::llround(number * found->second);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view units = "KMG";
  const std::size_t step = unit.empty() ? 0 : units.find(unit[0]) + 1;  // 0: no unit, or none that is known
  const bool is_unit = unit.empty() || (step != 0 && (unit.size() == 1 || unit.substr(1) == "iB"));
  if (error != std::errc() || !is_unit || number == 0 || number > (std::uint64_t{1} << 40) >> 10 * step)
    return std::nullopt;
  return number << 10 * step;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return std::string(text);
  std::string quoted = "'", escaped = "$'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    escaped += escaped_for_shell(c);
  }
  return (text::to_line(text) == text ? quoted : escaped) + "'";
}

void print(std::string_view text, std::FILE* file) {
  const std::string lines = output::to_sequences(text, text::to_lines);
  if (std::fwrite(lines.data(), 1, lines.size(), file) == lines.size() && std::fflush(file) == 0) return;
  throw std::system_error(errno, std::generic_category(), "writing");
}

void complain(std::string_view name, std::string_view message) {
  const std::string line = text::to_line(std::string(name) + ": " + std::string(message)) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

CommandLine::CommandLine(int count, const char* const* arguments, const std::vector<Option>& options,
                         Operands operands) {
  if (operands == Operands::command) {
    const int begin = std::min(count, command_begin(count, arguments, options));
    files_.assign(arguments + begin, arguments + count);
    count = begin;
  }
  const po::options_description described = describe(options);
  po::positional_options_description positions;
  positions.add("file", -1);
  std::vector<std::string> words;
  for (int i = 1; i < count; ++i) {
    if (arguments[i] == std::string_view("--")) {
      words.insert(words.end(), arguments + i, arguments + count);
      break;
    }
    const Option* const lone = lone_option(arguments[i], options);
    const bool is_value = i > 1 && takes_next_word(arguments[i - 1], options);
    if (lone != nullptr && !is_value)
      given_[lone->name];
    else
      words.emplace_back(arguments[i]);
  }
  po::command_line_parser parser(words);
  parser.options(described).positional(positions);
  parser.style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
  try {
    for (const auto& option : parser.run().options) {
      auto& values = given_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::unknown_option& error) {
    throw UsageError(unknown_option(error.get_option_name(), options));
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  if (const auto files = given_.extract("file"))
    files_.insert(files_.begin(), files.mapped().begin(), files.mapped().end());
  for (const Option& option : options) {
    if (option.takes != Option::Takes::values && values(option.name).size() > 1) {
      throw UsageError("--" + option.name + " is given twice");
    }
  }
}

void CommandLine::choose_output(const std::vector<Option>& options, bool directs, bool directs_all) {
  const std::string path = value("output", "");
  if (path.empty() || path == "-") return;
  const auto is_known = [&](const char* name) {
    return std::any_of(options.begin(), options.end(), [&](const Option& option) { return option.name == name; });
  };
  for (const char* const ending : {".svg", ".html", ".png", ".pdf"}) {
    if (!path.ends_with(ending) || !is_known("plot") || has("plot")) continue;
    for (const char* const form : {"json", "csv"}) {
      if (has(form)) throw UsageError("-o " + path + " is a picture; with --" + form + " --plot=" + path + " draws it");
    }
    given_["plot"] = {path};
    given_.erase("output");
    return;
  }
  bool is_form = false;
  for (const auto& [ending, form] : {std::pair(".json", "json"), {".csv", "csv"}, {".txt", "text"}}) {
    if (!path.ends_with(ending) || !is_known(form)) continue;
    is_form = true;
    if (!has("json") && !has("csv") && !has("text")) given_[form];
  }
  if (!directs || (!is_form && !directs_all)) return;
  standard_output_ = path;
  given_.erase("output");
}

std::vector<std::string> CommandLine::values(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

std::string CommandLine::value(const std::string& name, const std::string& otherwise) const {
  const auto found = given_.find(name);
  return found == given_.end() || found->second.empty() ? otherwise : found->second.front();
}

std::uint64_t CommandLine::number(const std::string& name, std::uint64_t otherwise, std::uint64_t least,
                                  std::uint64_t most) const {
  assert(least <= most);
  if (!has(name)) return otherwise;
  const std::string text = value(name, "");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    refuse_value(name, "a number from " + std::to_string(least) + " to " + std::to_string(most), text);
  }
  return number;
}

std::string CommandLine::checked(const std::string& name,
                                 const std::function<std::string(const std::string&)>& fault) const {
  if (!has(name)) return {};
  const std::string text = value(name, "");
  if (const std::string why = fault(text); !why.empty()) throw UsageError("--" + name + ": " + why);
  return text;
}

std::string CommandLine::word(const std::string& name, const std::vector<std::string>& words) const {
  std::string given = value(name, words.front());
  if (std::find(words.begin(), words.end(), given) == words.end()) refuse_value(name, list_of(words), given);
  return given;
}

void refuse_value(const std::string& name, std::string_view wanted, const std::string& given) {
  const bool is_number = !given.empty() && given.find_first_not_of("0123456789.") == std::string::npos;
  const bool lacks_unit =
      is_number && !parse_duration(given) && (wanted.starts_with("a time") || wanted.starts_with("a step"));
  throw UsageError("--" + name + ": expected " + std::string(wanted) + ", not '" + given + "'" +
                   (lacks_unit ? "; its unit is missing" : did_you_mean(given, words_of_list(wanted))));
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return list;
}

void CommandLine::refuse_together(const std::string& first, std::initializer_list<const char*> others) const {
  for (const char* other : others) {
    if (has(first) && has(other)) throw UsageError(std::string("--") + other + " does not go with --" + first);
  }
}

std::string CommandLine::file() const {
  if (files_.size() > 1) throw UsageError("one FILE at most, not also '" + files_[1] + "'");
  return files_.empty() ? "-" : files_[0];
}

bool is_closed_pipe(const std::exception& error) {
  const auto* const failed = dynamic_cast<const std::system_error*>(&error);
  return failed != nullptr && failed->code() == std::errc::broken_pipe;
}

int run(int count, const char* const* arguments, const Tool& tool) {
  hold_streams();
  ignore_failed_writes();
  const bool launches = tool.operands == CommandLine::Operands::command;
  try {
    const int status = run_unguarded(count, arguments, tool);
    return launches || status <= 128 ? status : end_by_signal(status - 128);
  } catch (const UsageError& error) {
    complain(tool.name, error.what());
    std::fprintf(stderr, "Try '%s --help' for more information.\n", tool.name);
    return launches ? status_failed : 2;
  } catch (const std::bad_alloc&) {
    complain(tool.name, "out of memory");
    return launches ? status_failed : 1;
  } catch (const std::exception& error) {
    if (is_closed_pipe(error)) {
      return end_by_signal(SIGPIPE);
    }
    complain(tool.name, error.what());
    return launches ? status_failed : 1;
  }
}

}  // namespace cmt::command
