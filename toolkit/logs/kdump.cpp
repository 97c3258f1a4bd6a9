// FreeBSD: MALLOC_CONF=utrace:true, `ktrace -t u`, `kdump`.
//
//     61039 make     USER  0x800607420 = malloc(26)
//     61039 100123 Web Content 1536334807.907404 0.000021 USER  free(0x800618480)
//
// The pid is right-aligned. `kdump -H` adds the thread after it (other systems write pid/tid). The options -T, -E
// and -R add times after the command's name: since 1970, since the start, since the record before. The name may contain
// blanks, so the columns before USER are parsed from both ends. Records of other types have the same columns. Only
// their times matter, because the times of -R add up over all records.

#include <array>

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
namespace {

using cmt::Event;
using cmt::Kind;

constexpr std::array<std::string_view, 14> other_types{" CALL  ", " RET   ", " NAMI  ",   " GIO   ",   " PSIG  ",
                                                       " CSW   ", " STRU  ", " STRUCT  ", " SYSCTL  ", " SCTL  ",
                                                       " CAP   ", " PFLT  ", " PRET  ",   " ARGS  "};

/// The columns before a record's body.
struct Columns {
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
  std::string_view program;
  std::array<std::uint64_t, 3> times{};
  std::size_t time_count = 0;
};

bool take_pid(std::string_view& left, Columns& columns) {
  std::string_view word = take_word(left), pid = word;
  if (take_until(word, '/', pid) && !whole_number(word, columns.tid)) return false;
  return whole_number(pid, columns.pid);
}

bool take_columns(std::string_view left, Columns& columns) {
  if (!take_pid(left, columns)) return false;
  for (std::string_view rest = left; columns.time_count < columns.times.size(); left = rest) {
    std::uint64_t time_ns = 0;
    const std::string_view word = take_last_word(rest);
    const std::size_t point = word.find('.');
    if (point == std::string_view::npos || word.size() - point < 7 || !whole_seconds(word, time_ns)) break;
    for (std::size_t i = columns.time_count++; i > 0; --i) columns.times[i] = columns.times[i - 1];
    columns.times[0] = time_ns;
  }
  left = trimmed(left);
  std::string_view rest = left;
  std::uint64_t tid = 0;
  if (whole_number(take_word(rest), tid) && !trimmed(rest).empty()) {
    columns.tid = tid;
    left = trimmed(rest);
  }
  columns.program = left;
  return true;
}

bool take_0x(std::string_view& text, std::uint64_t& value) {
  return take_prefix(text, "0x") && take_number(text, value, 16);
}

bool take_size(std::string_view& text, std::uint64_t& value) { return take_number(text, value) && text == ")"; }

/// `free(0x..)`, `0x.. = malloc(26)`, `0x.. = realloc(0x.., 17)`.
bool take_body(std::string_view body, Event& event) {
  if (take_prefix(body, "free(")) {
    event.kind = Kind::free;
    return take_0x(body, event.old_address) && body == ")";
  }
  if (!take_0x(body, event.address)) return false;
  if (take_prefix(body, " = malloc(")) return take_size(body, event.size);
  event.kind = Kind::realloc;
  return take_prefix(body, " = realloc(") && take_0x(body, event.old_address) && take_prefix(body, ", ") &&
         take_size(body, event.size);
}

bool is_other_utrace(std::string_view body) { return body == "malloc_init()" || body.starts_with("RTLD: "); }

class KdumpParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    const std::size_t place = line.find(type);
    if (place == std::string_view::npos) return parse_other(line, log);
    Columns columns;
    Event event;
    if (!take_columns(line.substr(0, place), columns)) return log.reject_line("a pid and a command before USER");
    elapsed_ns_ += relative(columns);
    if (!log.wants_process(columns.pid, columns.program)) return;
    const std::string_view body = trimmed(line.substr(place + type.size()));
    if (is_other_utrace(body)) return;
    if (!take_body(body, event)) return log.reject_line("malloc, realloc or free behind USER");
    event.thread = log.thread_number(columns.tid);
    event.time_ns = time(columns, log);
    log.add_event(event);
  }

 private:
  static constexpr std::string_view type = " USER  ";

  void parse_other(std::string_view line, ParsedLog& log) {
    for (const std::string_view other : other_types) {
      const std::size_t place = line.find(other);
      Columns columns;
      if (place == std::string_view::npos || !take_columns(line.substr(0, place), columns)) continue;
      elapsed_ns_ += relative(columns);
      if (!log.chosen_pid() || *log.chosen_pid() == columns.pid) log.leave_out(trimmed(other));
      return;
    }
    if (!trimmed(line).empty()) log.reject_line("a record of kdump");
  }

  static std::uint64_t relative(const Columns& columns) {
    const bool is_alone = columns.time_count == 1 && columns.times[0] < wall_clock_ns;
    return is_alone ? columns.times[0] : 0;
  }

  std::uint64_t time(const Columns& columns, ParsedLog& log) const {
    if (columns.time_count == 0) return cmt::unknown;
    if (columns.times[0] >= wall_clock_ns) return log.since_unix_start(columns.times[0]);
    return log.since_start(columns.time_count == 1 ? elapsed_ns_ : columns.times[0]);
  }

  std::uint64_t elapsed_ns_ = 0;  // the sum of the times that -R shows
};

bool identifies_kdump(std::string_view line) {
  const std::size_t place = line.find(" USER  ");
  Columns columns;
  Event event;
  if (place == std::string_view::npos || !take_columns(line.substr(0, place), columns)) return false;
  const std::string_view body = trimmed(line.substr(place + 7));
  return is_other_utrace(body) || take_body(body, event);
}

}  // namespace

extern const LogFormat kdump_format{"kdump", "FreeBSD kdump", identifies_kdump, make_parser<KdumpParser>};

}  // namespace cmt::logs
