// cmtwatch peak, show and play: prints one moment of a recording, or all of them. On a terminal `play` has a pace and
// keys; elsewhere it prints one moment after another.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/moment.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/moment_report.h"
#include "cmtwatch/report/report_output.h"
#include "cmtwatch/report/screen.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::watch {
namespace {

MomentOptions parse_moment(const command::CommandLine& line) {
  MomentOptions options{.path = parse_recording(line)};
  if (line.has("pid")) options.pid = parse_pid(line.value("pid", ""));
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.json = line.has("json");
  return options;
}

/// Returns the options with the current width of the terminal, if there is one.
MomentOptions fitted(MomentOptions options) {
  if (isatty(STDOUT_FILENO) == 1) options.width = terminal::terminal_size(STDOUT_FILENO).columns;
  return options;
}

/// `find_tick` returns the moment's tick.
int show_moment(const MomentOptions& options,
                const std::function<std::optional<std::int64_t>(database::Database&)>& find_tick) {
  database::Database database(options.path, database::Database::Mode::read);
  check_recording(database, options.path);
  const auto tick = find_tick(database);
  if (!tick) throw std::runtime_error(options.path + ": no such moment in the recording");
  const Moment moment = load_moment(database, *tick, options.pid);
  if (moment.processes.empty()) throw std::runtime_error(options.path + ": no such process at that moment");
  std::string missed;
  if (options.peak && !options.json) {
    for (const MissedPeak& peak : missed_peaks(database, options.pid)) missed += peak.text() + "\n";
  }
  command::print(options.json ? moment_json(moment, options.metric) : moment_text(moment, fitted(options)) + missed);
  return 0;
}

int peak(const command::CommandLine& line) {
  line.refuse_together("system", {"pid", "metric"});
  MomentOptions options = parse_moment(line);
  if (line.has("system")) return show_moment(options, least_available_tick);
  options.peak = true;
  options.metric = line.parsed("metric", "pss", peak_metric_names, peak_metric_named);
  return show_moment(options, [&](database::Database& database) {
    const auto tick = peak_tick(database, options.pid, options.metric);
    if (!tick && options.metric != PeakMetric::pss)
      throw std::runtime_error(options.path + ": the recording has no " + line.value("metric", ""));
    return tick;
  });
}

/// Returns the tick at a time, by one of the clocks of tick_at(). Reports on standard error if the recording had ended
/// by then, or had not begun.
std::optional<std::int64_t> tick_at_or_last(database::Database& database, const std::string& path, std::int64_t time_ns,
                                            const std::string& clock) {
  database::Statement end(database, "select end_ns from tick where id = (select max(id) from tick) and " + clock +
                                        " + end_ns - begin_ns < ?");
  if (const auto end_ns = end.bind(time_ns).run())
    command::complain("cmtwatch show", path + ": the recording ends at " +
                                           output::time_text(static_cast<double>(*end_ns)) +
                                           "; this is its last moment");
  if (clock != "wall_ns") return tick_at(database, time_ns, clock);
  database::Statement begin(database, "select wall_ns from tick where id = (select min(id) from tick) and wall_ns > ?");
  if (const auto wall_ns = begin.bind(time_ns).run())
    command::complain("cmtwatch show",
                      path + ": the recording begins at " + wall_text(*wall_ns) + "; this is its first moment");
  return tick_at(database, time_ns, clock);
}

int show(const command::CommandLine& line) {
  const MomentOptions options = parse_moment(line);
  if (!line.has("at")) throw command::UsageError("the moment is missing: --at=2.5s, or --at=2026-11-22T00:53:10");
  if (const auto wall_ns = parse_wall(line.value("at", "")))
    return show_moment(options, [&](database::Database& database) {
      return tick_at_or_last(database, options.path, *wall_ns, "wall_ns");
    });
  const std::int64_t at_ns = line.parsed("at", "", "a time such as 2.5s or 2026-11-22T00:53:10",
                                         [](const std::string& text) { return command::parse_duration(text); });
  return show_moment(options, [&](database::Database& database) {
    return tick_at_or_last(database, options.path, at_ns, "begin_ns");
  });
}

/// The moments of a recording at which the requested processes existed.
class Moments {
 public:
  Moments(database::Database& database, PidOrAll pid)
      : pid_(pid), after_(database, query("min", ">")), before_(database, query("max", "<")) {}

  using Tick = std::optional<std::int64_t>;
  Tick first() { return find(after_, std::numeric_limits<std::int64_t>::min()); }
  Tick last() { return find(before_, std::numeric_limits<std::int64_t>::max()); }
  Tick after(std::int64_t tick) { return find(after_, tick); }
  Tick before(std::int64_t tick) { return find(before_, tick); }

 private:
  static std::string query(const std::string& which, const std::string& side) {
    return "select " + which + "(id) from tick where id " + side +
           " ?1 and exists (select 1 from process join process_sample on process_id = process.id and tick_id = tick.id "
           "where first_tick <= tick.id and last_tick >= tick.id and (pid = ?2 or ?2 is null))";
  }

  Tick find(database::Statement& statement, std::int64_t tick) { return statement.bind(tick).bind(pid_).run(); }

  PidOrAll pid_;
  database::Statement after_, before_;
};

struct PlayOptions {
  MomentOptions moment;
  std::optional<double> speed{};              ///< so many times as fast as it was recorded
  std::optional<std::int64_t> interval_ns{};  ///< between two moments, instead
};

class Player {
 public:
  explicit Player(const PlayOptions& options)
      : options_(options),
        database_(options.moment.path, database::Database::Mode::read),
        moments_(checked(), options.moment.pid) {
    const auto first = moments_.first(), last = moments_.last();
    if (!first || !last) throw std::runtime_error(options.moment.path + ": no such moment in the recording");
    now_ = load(*first);
    end_ns_ = begin_of(*last);
  }

  /// Prints one moment after another; waits between them only if a pace is asked for.
  void print_all() {
    const command::Interrupts interrupts;
    for (;;) {
      command::print(moment_text(now_, fitted(options_.moment)) + "\n");
      const auto next = moments_.after(now_.tick);
      if (!next) return;
      pollfd ready{interrupts.fd(), POLLIN, 0};
      const bool waits = options_.speed || options_.interval_ns;
      const std::int64_t pause_ms = waits ? pause_ns(begin_of(*next)) / 1'000'000 : 0;
      if (poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(pause_ms, std::numeric_limits<int>::max()))) > 0)
        return;
      now_ = load(*next);
    }
  }

  void show() {
    Screen screen;
    bool paused = false;
    for (;;) {
      const auto next = moments_.after(now_.tick);
      std::optional<std::int64_t> until_ns;
      if (next && !paused) until_ns = process::now_ns() + pause_ns(begin_of(*next));
      screen.draw(moment_text(now_, fitted(options_.moment)), status(paused, next.has_value()));
      const Key key = screen.wait(until_ns);
      if (key == Key::quit) return;
      if (key == Key::pause) paused = !paused;
      if (key == Key::next || key == Key::back) paused = true;
      if (const auto tick = moved(key, next)) now_ = load(*tick);
    }
  }

 private:
  database::Database& checked() {
    check_recording(database_, options_.moment.path);
    return database_;
  }

  Moment load(std::int64_t tick) { return load_moment(database_, tick, options_.moment.pid); }

  std::optional<std::int64_t> moved(Key key, std::optional<std::int64_t> next) {
    if (key == Key::back) return moments_.before(now_.tick);
    if (key == Key::first) return moments_.first();
    if (key == Key::last) return moments_.last();
    return key == Key::pause ? std::nullopt : next;
  }

  std::int64_t begin_of(std::int64_t tick) {
    database::Statement select(database_, "select begin_ns from tick where id = ?");
    select.bind(tick);
    std::int64_t begin_ns = 0;
    while (select.step()) begin_ns = select.time_ns(0);
    return begin_ns;
  }

  /// Returns how long to wait before the next moment is shown.
  std::int64_t pause_ns(std::int64_t next_begin_ns) const {
    if (options_.interval_ns) return *options_.interval_ns;
    constexpr double longest_ns = 1e17;
    const double pause = static_cast<double>(next_begin_ns - now_.begin_ns) / options_.speed.value_or(1);
    return std::llround(std::clamp(pause, 0.0, longest_ns));
  }

  std::string status(bool paused, bool goes_on) const {
    return " " + output::seconds_text(now_.begin_ns) + " of " + output::seconds_text(end_ns_) + "  " +
           (!goes_on ? "end"
            : paused ? "paused"
                     : "playing") +
           "  space: pause, arrows and Enter: step, Home, End, q: quit ";
  }

  const PlayOptions& options_;
  database::Database database_;
  Moments moments_;
  Moment now_;
  std::int64_t end_ns_ = 0;
};

PlayOptions parse_play(const command::CommandLine& line) {
  line.refuse_together("speed", {"interval"});
  PlayOptions options{.moment = parse_moment(line)};
  if (line.has("speed")) options.speed = parse_number(line, "speed", 0, 1e9);
  if (line.has("interval")) options.interval_ns = parse_time(line, "interval");
  return options;
}

int play(const command::CommandLine& line) {
  const PlayOptions options = parse_play(line);
  Player player(options);
  Screen::available() ? player.show() : player.print_all();
  return 0;
}

constexpr char moment_help[] =
    R"(  -v, --verbose      print each process separately
  --bytes            print numbers in bytes
  --json             print JSON, with every mapping
  --color=auto|always|never
                     print headings in bold. auto, the default: on a terminal,
                     unless NO_COLOR is set
)";

}  // namespace

Subcommand peak_subcommand() {
  return {.name = "peak",
          .summary = "print the parts of the memory at the peak of a recording",
          .help = R"(Usage: cmtwatch peak [OPTION]... FILE

Prints the parts of the memory at the peak of a recording: the moment at which
its processes together had most.

  --pid=PID          the peak of this process alone
  --metric=METRIC    find the peak by pss (the default; rss if pss was not
                     recorded), rss (of the mappings) or statm
  --system           instead of the peak, the moment at which the machine had
                     least memory available, with its processes
)" + std::string(moment_help),
          .run = peak};
}

Subcommand show_subcommand() {
  return {.name = "show",
          .summary = "print the parts of the memory at another moment",
          .help = R"(Usage: cmtwatch show [OPTION]... --at=TIME FILE

Prints the parts of the memory at a moment of a recording.

  --at=TIME          the moment: a time since the recording began, such as 2.5s,
                     or a date, such as 2026-11-22T00:53:10
  --pid=PID          only this process
)" + std::string(moment_help),
          .run = show};
}

Subcommand play_subcommand() {
  return {.name = "play",
          .summary = "show a recording moment by moment",
          .help = R"(Usage: cmtwatch play [OPTION]... FILE

Shows a recording moment by moment. Keys on a terminal: the space bar pauses,
the arrows and Enter step, Home and End go to either end, q quits. Without a
terminal the moments are printed one after another.

  --speed=X          play X times as fast as it was recorded
  --interval=TIME    show a moment every TIME
  --pid=PID          only this process
  -v, --verbose      print each process separately
  --bytes            print numbers in bytes
)",
          .run = play};
}

}  // namespace cmt::watch
