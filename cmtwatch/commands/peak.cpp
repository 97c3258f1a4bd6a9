// cmtwatch peak and show: one moment of a recording.

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/moment.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/moment_report.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {
namespace {

/// `find_tick` returns the moment's tick.
int show_moment(const MomentOptions& options, const std::function<std::optional<std::int64_t>(Database&)>& find_tick) {
  Database database(options.path, Database::Mode::read);
  check_recording(database, options.path);
  const auto tick = find_tick(database);
  if (!tick) throw std::runtime_error(options.path + ": no such moment in the recording");
  const Moment moment = load_moment(database, *tick, options.pid);
  if (moment.processes.empty()) throw std::runtime_error(options.path + ": no such process at that moment");
  command::print(options.json ? moment_json(moment) : moment_text(moment, options));
  return 0;
}

int peak(const command::CommandLine& line) {
  line.refuse_together("system", {"pid"});
  MomentOptions options = parse_moment(line);
  if (line.has("system")) return show_moment(options, least_available_tick);
  options.peak = true;
  return show_moment(options, [&](Database& database) { return peak_tick(database, options.pid); });
}

int show(const command::CommandLine& line) {
  const MomentOptions options = parse_moment(line);
  const std::int64_t at_ns = line.parsed("at", "", "a time such as 2.5s",
                                         [](const std::string& text) { return command::parse_duration(text, "s"); });
  return show_moment(options, [&](Database& database) { return tick_at(database, at_ns); });
}

constexpr char moment_help[] =
    R"(  -v, --verbose      each process by itself
  --bytes            numbers in bytes
  --json             as JSON, with every mapping
)";

}  // namespace

Subcommand peak_subcommand() {
  return {.name = "peak",
          .summary = "tell what the memory of a recording was made of at its peak",
          .help = R"(Usage: cmtwatch peak [OPTION]... FILE

Tells what the memory was made of when the processes of a recording had most of
it together.

  --pid=PID          when this process had most
  --system           when the machine had least memory available, with its
                     processes
)" + std::string(moment_help),
          .run = peak};
}

Subcommand show_subcommand() {
  return {.name = "show",
          .summary = "the same at another moment",
          .help = R"(Usage: cmtwatch show [OPTION]... --at=TIME FILE

Tells what the memory was made of at a moment of a recording.

  --at=TIME          since the recording began, such as 2.5s
  --pid=PID          of this process alone
)" + std::string(moment_help),
          .run = show};
}

}  // namespace cmt::watch
