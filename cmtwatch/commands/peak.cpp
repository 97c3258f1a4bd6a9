// cmtwatch peak and show: one moment of a recording.

#include <stdexcept>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/commands/moment_options.h"
#include "cmtwatch/recording/moment.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/moment_report.h"

namespace cmt::watch {
namespace {

std::optional<std::int64_t> wanted_tick(Database& database, const MomentOptions& options) {
  switch (options.when) {
    case MomentOptions::When::peak:
      return peak_tick(database, options.whose);
    case MomentOptions::When::worst:
      return worst_tick(database);
    case MomentOptions::When::at:
      return tick_at(database, options.at_ns);
  }
  return std::nullopt;
}

int show_moment(const MomentOptions& options) {
  Database database(options.path, Database::Mode::read);
  check_recording(database, options.path);
  const auto tick = wanted_tick(database, options);
  if (!tick) throw std::runtime_error(options.path + ": no such moment in the recording");
  const Moment moment = load_moment(database, *tick, options.whose);
  if (moment.processes.empty()) throw std::runtime_error(options.path + ": no such process at that moment");
  command::print(options.json ? moment_json(moment) : moment_text(moment, options));
  return 0;
}

}  // namespace

int peak(const command::CommandLine& line) { return show_moment(parse_peak(line)); }
int show(const command::CommandLine& line) { return show_moment(parse_show(line)); }

}  // namespace cmt::watch
