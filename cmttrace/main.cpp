// cmttrace: runs a command with the tracer loaded into it, and sums up the recording at the end.

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmttrace/options.h"
#include "toolkit/command/launch.h"
#include "toolkit/command/trace_status.h"
#include "toolkit/command/tracer.h"
#include "toolkit/output/numbers.h"

namespace cmt::trace_launcher {
namespace {

using Clock = std::chrono::steady_clock;

void say(const std::string& text) { std::fprintf(stderr, "cmttrace: %s\n", text.c_str()); }

command::Launch launch_of(const Options& options, const command::TraceStatusFile& traces) {
  command::Launch launch{.words = options.command, .output = {}, .error = {}, .environment = options.environment};
  for (auto& variable : command::tracing_environment(options.output, options.follow))
    launch.environment.push_back(std::move(variable));
  launch.environment.emplace_back("CMTTRACE_STATUS", traces.setting());
  return launch;
}

std::string counted(std::uint64_t number, const char* what) {
  return output::with_commas(number) + " " + what + (number == 1 ? "" : "s");
}

std::string summary(const command::RecordedTraces& recorded, const std::string& first, double seconds) {
  if (recorded.files == 0) return "nothing was recorded";
  std::string text = counted(recorded.events, "event") + " of " + counted(recorded.threads, "thread") + " in ";
  text += recorded.files == 1 ? first : std::to_string(recorded.files) + " traces, " + first + " and others";
  text += ": " + output::with_commas(recorded.bytes) + " bytes";
  if (recorded.events != 0) {
    text += ", " + output::fixed(static_cast<double>(recorded.bytes) / static_cast<double>(recorded.events), 3) +
            " an event";
  }
  text += "; " + output::fixed(seconds, 2) + " s; ";
  if (recorded.repairs != 0) text += counted(recorded.repairs, "event") + " lost or in doubt";
  if (recorded.repairs != 0 && recorded.broken != 0) text += "; ";
  if (recorded.broken != 0) text += counted(recorded.broken, "trace") + " could not be written to the end";
  if (recorded.error != 0) text += ": " + std::generic_category().message(recorded.error);
  if (recorded.repairs == 0 && recorded.broken == 0) text += "nothing was lost";
  if (recorded.unfinished > recorded.broken) {
    text += "; " + counted(recorded.unfinished - recorded.broken, "trace") + " not ended";
  }
  return text;
}

/// Becomes the collector, which recovers the trace.
[[noreturn]] void recover(const Options& options) {
  std::vector<std::string> words{command::collector_path(), "--recover=" + options.recover};
  if (!options.output.empty()) words.push_back("--output=" + options.output);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  throw std::system_error(errno, std::generic_category(), words[0]);
}

int run(const command::CommandLine& line) {
  const Options options = parse_options(line);
  if (!options.recover.empty()) recover(options);
  std::optional<command::TraceStatusFile> traces(std::in_place);
  const command::Launch launch = launch_of(options, *traces);
  if (const std::string why = command::why_not_recordable(options.command[0]); !why.empty()) say(why);
  try {
    const auto begin = Clock::now();
    command::RunningCommand launched(launch);
    const command::Ended ended = launched.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto recorded = command::wait_for_traces(*traces, say, [&](int milliseconds) {
      pollfd signals{launched.fd(), POLLIN, 0};
      return poll(&signals, 1, milliseconds) > 0 && command::asks_to_end(launched.handle().signal);
    });
    const auto begun = traces->begun();
    say(summary(recorded, begun.empty() ? "" : begun.front().path, seconds));
    traces.reset();  // exit_like() does not return
    command::exit_like(ended);
  } catch (const command::LaunchError& error) {
    say(error.what());
    return error.status;
  }
}

}  // namespace
}  // namespace cmt::trace_launcher

int main(int argc, char** argv) {
  using namespace cmt::trace_launcher;
  using cmt::command::CommandLine;
  return cmt::command::run(argc, argv,
                           {"cmttrace", CMT_VERSION, help_text, known_options(), run, CommandLine::Operands::command});
}
