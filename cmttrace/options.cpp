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

Runs a command and records what it asks of malloc, with libcmttrace.so loaded
into it. At the end a line on standard error says what was recorded.

  -o, --output=OUT  where to: %n stands for the program's name, %p for its
                    process id; a name that ends in .cmt gets the compact form,
                    any other text. Without it: %n.%p.cmt
  --follow=yes|no   record the command's children too: yes
  --time            record when each call was made
  --usable          record how large each block really is (malloc_usable_size)
  --sample=TIME     record the resident memory as often: 10ms
  --paused          record nothing before cmt_resume() or the command "start"
  --control=FIFO    where to make a FIFO that takes commands: stop, start, flush,
                    mark LABEL
  --max-bytes=SIZE  end the trace, not the command, when it is so large: 100M
  --max-events=N    when it has so many events
  --max-time=TIME   when it is so old: 10s
  --rings=FILE      keep in FILE what is not yet in the trace, for --recover
  --recover=RINGS   write the trace of a command that ended together with its
                    collector, as when the machine's power fails, from the FILE
                    of --rings; no command is run
  -h, --help        say this
  --version         say the version

Exit status: the command's; 125 failed here, 126 the command cannot be started,
127 it is not there. A command that a signal ends ends this with it.
)";

namespace {

using command::CommandLine;
using command::UsageError;

bool parse_follow(const std::string& text) {
  if (text != "yes" && text != "no") throw UsageError("--follow is yes or no, not '" + text + "'");
  return text == "yes";
}

/// Options whose value the tracer understands as it is, and what it calls them (libcmttrace(1)).
constexpr std::array<std::pair<const char*, const char*>, 6> passed_on{{{"sample", "CMTTRACE_SAMPLE"},
                                                                        {"control", "CMTTRACE_CONTROL"},
                                                                        {"max-bytes", "CMTTRACE_MAX_BYTES"},
                                                                        {"max-events", "CMTTRACE_MAX_EVENTS"},
                                                                        {"max-time", "CMTTRACE_MAX_TIME"},
                                                                        {"rings", "CMTTRACE_RINGS"}}};

/// What may follow the digits of an option's number; nothing where that is left to the tracer.
const std::map<std::string, std::set<std::string>> units{
    {"sample", {"ns", "us", "ms", "s", "min"}},
    {"max-time", {"", "ns", "us", "ms", "s", "min"}},
    {"max-bytes", {"", "K", "M", "G", "KiB", "MiB", "GiB"}},
    {"max-events", {""}},
};

/// The tracer would say so in the command's name, and let it run.
void check(const std::string& option, const std::string& value) {
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
    check(option, line.value(option, ""));
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
