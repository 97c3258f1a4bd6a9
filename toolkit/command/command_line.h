/// Command lines of all tools: options are parsed, --help and --version answered, errors turned into exit statuses.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::command {

/// Wrong use: one line, without the tool's name.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a UsageError: the value of `--name` is not what is `wanted`. If that is a list, as in "events, time or
/// bytes", suggests the word that was mistyped.
[[noreturn]] void refuse_value(const std::string& name, std::string_view wanted, const std::string& given);

/// "yes, no or auto".
std::string list_of(const std::vector<std::string>& words);

/// One option of a tool, `--name`, and `-letter` where it has one.
struct Option {
  /// `value_or_nothing`: `--name` or `--name=VALUE`.
  enum class Takes { nothing, value, values, value_or_nothing };

  std::string name;
  Takes takes = Takes::nothing;
  char letter = '\0';
};

/// A parsed command line. Options are asked for by their long names; an option that takes one value may be given once.
class CommandLine {
 public:
  /// Whether the words after the options are files of the tool, or a command that the tool starts.
  enum class Operands { files, command };

  /// Throws UsageError, which suggests an option, for one that is not in `options`. `--help` (`-h`) and `--version`
  /// (`-V`) are always known. A command begins at the first word that is no option (or after `--`); its own options are
  /// left alone.
  CommandLine(int count, const char* const* arguments, const std::vector<Option>& options,
              Operands operands = Operands::files);

  bool has(const std::string& name) const { return given_.contains(name); }

  /// The value of an option, or `otherwise` where none is given.
  std::string value(const std::string& name, const std::string& otherwise) const;

  /// The value of an option, or `otherwise`, as a decimal number. Throws UsageError where it is not from `least` to
  /// `most`.
  std::uint64_t number(const std::string& name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) const;

  /// The value of an option, "" where it is not given. Throws UsageError where `fault`, given the value, returns a
  /// reason to refuse it.
  std::string checked(const std::string& name, const std::function<std::string(const std::string&)>& fault) const;

  /// The value of an option, or `otherwise`, parsed. `parse` returns an optional. If it is empty, calls refuse_value().
  template <class Parse>
  auto parsed(const std::string& name, const std::string& otherwise, std::string_view wanted, Parse parse) const {
    const std::string text = value(name, otherwise);
    const auto result = parse(text);
    if (!result) refuse_value(name, wanted, text);
    return *result;
  }

  /// The value of an option, one of these words; the first one if it is not given. Calls refuse_value() for others.
  std::string word(const std::string& name, const std::vector<std::string>& words) const;

  /// All values, in order.
  std::vector<std::string> values(const std::string& name) const;

  /// Throws UsageError where one of the others is given beside the first.
  void refuse_together(const std::string& first, std::initializer_list<const char*> others) const;

  /// The file that gets the tool's standard output, by choose_output(). Empty: none.
  const std::string& standard_output() const { return standard_output_; }

  /// Takes the ending of `--output=FILE` for the form to write. The endings .json, .csv and .txt mean `--json`, `--csv`
  /// and `--text`, unless one of these is given. With .svg, .html, .png and .pdf, `--plot=FILE` replaces `--output`,
  /// unless `--plot` is given.
  /// `directs`: the other three forms go to the standard output, for which the file is opened, and `--output` is no
  /// longer given. `directs_all`: so do all names with other endings.
  void choose_output(const std::vector<Option>& options, bool directs, bool directs_all);

  /// The operands: files, or a command and its arguments.
  const std::vector<std::string>& files() const { return files_; }

  /// The one FILE of a tool that takes one at most; "-" where there is none. Throws UsageError.
  std::string file() const;

 private:
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> files_;
  std::string standard_output_;
};

/// The text as one word of a shell's command, in quotes where a shell would change it: '$HOME'. Characters that a
/// terminal obeys and bytes that are not UTF-8, which no message contains, have the escapes of bash and zsh: $'a\nb'.
std::string shell_word(std::string_view text);

/// Nanoseconds of a span of time: "250ms", "1.5s", "10us", "80ns", "2min", "1h". Only 0 needs no unit: what a number
/// alone means would have to be learned for each option. Returns nothing for any other text, and for spans of more than
/// 285 years.
std::optional<std::int64_t> parse_duration(std::string_view text);

/// Parses a size above 0: "524288", "512K", "512KiB", up to "1024G". Returns nullopt for other texts.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// Writes a text and flushes it, so that a full disk is noticed. Characters that a terminal would obey become blanks,
/// but for ends of lines and tabs: the text may hold names from traces and of processes. Throws std::system_error.
void print(std::string_view text, std::FILE* file = stdout);

/// Writes two outputs. The second one is written even if the first one fails: a result of hours is not lost with the
/// other. Throws the exception of the first.
template <class First, class Second>
void do_both(const First& first, const Second& second) {
  std::exception_ptr failure;
  try {
    first();
  } catch (...) {
    failure = std::current_exception();
  }
  second();
  if (failure) std::rethrow_exception(failure);
}

/// Writes "NAME: MESSAGE" to standard error as one line, the same characters and line feeds as blanks.
void complain(std::string_view name, std::string_view message);

/// A tool, described to run().
struct Tool {
  const char* name;
  const char* version;
  const char* help;
  std::vector<Option> options;

  /// Does the tool's work and returns the exit status.
  std::function<int(const CommandLine&)> run{};

  /// A tool with the operands `command` is a launcher. It exits with the command's status; so its own failures, wrong
  /// use included, are 125, as with env(1).
  CommandLine::Operands operands = CommandLine::Operands::files;

  /// The meaning of `--output=FILE` (CommandLine::choose_output).
  enum class Output {
    own,     ///< the tool's
    form,    ///< FILE's ending is the form
    report,  ///< the same, and the standard output goes to a FILE with such an ending
    all,     ///< the same, and to every other FILE
  };
  Output output = Output::own;
};

/// The statuses of a launcher that could not launch: the command was found but did not start, or was not found.
constexpr int status_failed = 125;

/// An input as messages and texts for people name it: "-" is standard input.
inline std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }
constexpr int status_cannot_start = 126;
constexpr int status_not_found = 127;

/// Whether an output could not be written because its reader has closed the pipe, as head(1) does: no error.
bool is_closed_pipe(const std::exception& error);

/// Runs a tool; every main() calls this. Prints --help and --version on standard output. An exception becomes one line
/// on standard error. The exit status is then 2 for a UsageError, 1 for all others, and 125 from a launcher. A tool
/// that is no launcher and returns 128 + N was interrupted by signal N, which ends it here. A closed pipe ends the tool
/// as SIGPIPE would. SIGPIPE and SIGXFSZ are ignored, so that write() fails instead: a launcher has to restore them in
/// its child (signals_of_failed_writes()).
int run(int count, const char* const* arguments, const Tool& tool);

}  // namespace cmt::command
