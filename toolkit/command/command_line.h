#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::command {

/// Wrong use: one line, without the tool's name.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One option of a tool, `--name`, and `-letter` where it has one.
struct Option {
  /// `value_or_nothing`: `--name` or `--name=VALUE`.
  enum class Takes { nothing, value, values, value_or_nothing };

  std::string name;
  Takes takes = Takes::nothing;
  char letter = '\0';
};

/// What a command line says. Long names stand for options; an option that takes one value may be given once.
class CommandLine {
 public:
  /// Who the words after the options belong to.
  enum class Operands { files, command };

  /// Throws UsageError for what the options do not know. `--help` (`-h`) and `--version` are always known. A command
  /// begins at the first word that is no option (or after `--`), and its own options are left alone.
  CommandLine(int count, const char* const* arguments, const std::vector<Option>& options,
              Operands operands = Operands::files);

  bool has(const std::string& name) const { return given_.contains(name); }

  /// The value of an option, or `otherwise` where none is given.
  std::string value(const std::string& name, const std::string& otherwise) const;

  /// The same for a whole number in decimal from `least` to `most`. Throws UsageError.
  std::uint64_t number(const std::string& name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) const;

  /// The value of an option, "" where it is not given. `fault` says what is wrong with one; empty: nothing is. Throws
  /// UsageError.
  std::string checked(const std::string& name, const std::function<std::string(const std::string&)>& fault) const;

  /// The value of an option, or `otherwise`, as `parse` reads it: as an optional, empty for what is not `wanted`.
  /// Throws UsageError.
  template <class Parse>
  auto parsed(const std::string& name, const std::string& otherwise, std::string_view wanted, Parse parse) const {
    const std::string text = value(name, otherwise);
    const auto result = parse(text);
    if (!result) refuse(name, wanted, text);
    return *result;
  }

  /// All values, in order.
  std::vector<std::string> values(const std::string& name) const;

  /// Throws UsageError where one of the others is given beside the first.
  void refuse_together(const std::string& first, std::initializer_list<const char*> others) const;

  /// What is no option: files, or a command and its arguments.
  const std::vector<std::string>& files() const { return files_; }

  /// The one FILE of a tool that takes one at most; "-" where there is none. Throws UsageError.
  std::string file() const;

 private:
  [[noreturn]] static void refuse(const std::string& name, std::string_view wanted, const std::string& given);

  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> files_;
};

/// Writes a text to standard output, at once. Throws std::system_error.
void print(std::string_view text);

/// A tool as its main() hands it over.
struct Tool {
  const char* name;
  const char* version;
  const char* help;
  std::vector<Option> options;

  /// Does the tool's work and returns the exit status.
  std::function<int(const CommandLine&)> run{};

  /// A launcher's operands are a command. It passes the command's status on, so that its own failures are 125, as with
  /// env(1), wrong use included.
  CommandLine::Operands operands = CommandLine::Operands::files;
};

/// The statuses of a launcher that could not launch: the command was found but did not start, or was not found.
constexpr int status_failed = 125;
constexpr int status_cannot_start = 126;
constexpr int status_not_found = 127;

/// The outline of every main: answers --help and --version on standard output, runs the tool, and turns what it throws
/// into one line on standard error and an exit status: 2 for a UsageError, 1 for all else; 125 from a launcher. A
/// closed pipe and a file that may not grow are errors like any other, not signals: a launcher has to restore SIGPIPE
/// and SIGXFSZ in its child.
int run(int count, const char* const* arguments, const Tool& tool);

}  // namespace cmt::command
