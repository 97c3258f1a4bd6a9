#include "cmttrace/options.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

namespace cmt::trace_launcher {

const char help_text[] =
    R"(Usage: cmttrace [OPTION]... [--] COMMAND [ARGUMENT]...
       cmttrace --recover=RINGS [-o OUT]

Runs a command with libcmttrace.so loaded into it, which records its calls of
malloc and free. At the end, a line on standard error sums up the recording.

  -o, --output=OUT  the trace's path: %n is the program's name, %p its process
                    id; a name that ends in .cmt gets the compact form, any
                    other the text form. Default: %n.%p.cmt
  --follow=yes|no   record the command's children too. Default: yes
  --time            record when each call was made
  --usable          record each block's usable size (malloc_usable_size)
  --sample=TIME     record the resident memory at this interval: 10ms
  --paused          record nothing before cmt_resume() or the command "start"
  --control=FIFO    create a FIFO that takes commands: stop, start, flush,
                    mark LABEL
  --max-bytes=SIZE  end the trace, not the command, at this size: 100M
  --max-events=N    after this many events
  --max-time=TIME   after this time: 10s
  --rings=FILE      keep events that are not in the trace yet in FILE, for
                    --recover
  --recover=RINGS   write the trace of a command that ended together with its
                    collector, as in a power failure, from the FILE of --rings;
                    no command is run
  -h, --help        show this help
  --version         show the version

Exit status: the command's; 125 cmttrace failed, 126 the command cannot be
started, 127 it was not found. A signal that ends the command ends cmttrace too.
)";

namespace {

using command::CommandLine;
using command::UsageError;

bool parse_follow(const std::string& text) {
  if (text != "yes" && text != "no") throw UsageError("--follow is yes or no, not '" + text + "'");
  return text == "yes";
}

/// Options whose value is passed on in a variable of the tracer (libcmttrace(1)).
constexpr std::array<std::pair<const char*, const char*>, 6> passed_on{{{"sample", "CMTTRACE_SAMPLE"},
                                                                        {"control", "CMTTRACE_CONTROL"},
                                                                        {"max-bytes", "CMTTRACE_MAX_BYTES"},
                                                                        {"max-events", "CMTTRACE_MAX_EVENTS"},
                                                                        {"max-time", "CMTTRACE_MAX_TIME"},
                                                                        {"rings", "CMTTRACE_RINGS"}}};

/// The units that an option's number may have. An option that is not here takes any text.
const std::map<std::string, std::set<std::string>> units{
    {"sample", {"ns", "us", "ms", "s", "min"}},
    {"max-time", {"", "ns", "us", "ms", "s", "min"}},
    {"max-bytes", {"", "K", "M", "G", "KiB", "MiB", "GiB"}},
    {"max-events", {""}},
};

/// The tracer checks its variables too, but then the command runs already.
void check_value(const std::string& option, const std::string& value) {
  const std::size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  const auto allowed = units.find(option);
  const bool fits = allowed == units.end() || (digits != 0 && allowed->second.contains(value.substr(digits)));
  if (value.empty() || !fits) throw UsageError("--" + option + " cannot be '" + value + "'");
}

}  // namespace

std::vector<command::Option> known_options() {
  constexpr auto value = command::Option::Takes::value;
  std::vector<command::Option> options{
      {"follow", value}, {"output", value, 'o'}, {"recover", value}, {"time"}, {"usable"}, {"paused"}};
  for (const auto& [option, variable] : passed_on) options.push_back({option, value});
  return options;
}

Options parse_options(const CommandLine& line) {
  Options options;
  options.output = line.value("output", options.output);
  if (options.output.empty()) throw UsageError("--output: a name is missing");
  options.follow = parse_follow(line.value("follow", "yes"));
  if (line.has("time")) options.environment.emplace_back("CMTTRACE_TIME", "1");
  if (line.has("usable")) options.environment.emplace_back("CMTTRACE_USABLE", "1");
  if (line.has("paused")) options.environment.emplace_back("CMTTRACE_START", "paused");
  for (const auto& [option, variable] : passed_on) {
    if (!line.has(option)) continue;
    check_value(option, line.value(option, ""));
    options.environment.emplace_back(variable, line.value(option, ""));
  }
  options.command = line.files();
  if (line.has("recover")) {
    if (!options.command.empty()) throw UsageError("--recover runs no command");
    options.recover = line.value("recover", "");
    options.output = line.value("output", "");
    return options;
  }
  if (options.command.empty()) throw UsageError("a command to record is missing");
  return options;
}

}  // namespace cmt::trace_launcher
