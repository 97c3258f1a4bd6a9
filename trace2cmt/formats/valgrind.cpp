// valgrind --trace-malloc=yes: the calls among what else it says.
//
//     ==14886== Memcheck, a memory error detector
//     --14886-- malloc(10) = 0x4A43040
//     --14886-- calloc(3,8) = 0x4A43090
//     --14886-- memalign(al 64, size 128) = 0x4A439C0
//     --14886-- _ZnwmSt11align_val_t(size 64, al 64) = 0x4D70D80
//     --14886-- _ZdlPvm(0x4D70C80)
//     --14886-- realloc(0x4A43960,0)free(0x4A43960)           a call within a call, in one line
//     --14886--  = 0
//     --14886-- realloc(0x0,20)malloc(20) = 0x4A430F0
//
// With --time-stamp=yes a time since the start stands before the pid: `--00:00:00:00.512 14886--`. Several processes
// come from --trace-children=yes. Threads are not told.

#include "trace2cmt/formats/call_names.h"
#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace trace2cmt {
namespace {

using cmt::Event;
using cmt::Kind;

/// Days, hours, minutes, seconds: 00:00:01:02.512.
bool whole_time_stamp(std::string_view word, std::uint64_t& ns) {
  constexpr std::uint64_t minute_ns = 60'000'000'000;
  std::string_view days, hours, minutes;
  std::uint64_t day = 0, hour = 0, minute = 0;
  if (!take_until(word, ':', days) || !take_until(word, ':', hours) || !take_until(word, ':', minutes)) return false;
  if (!whole_number(days, day) || !whole_number(hours, hour) || !whole_number(minutes, minute)) return false;
  if (day > 9999 || hour > 23 || minute > 59 || !whole_seconds(word, ns)) return false;
  ns += ((day * 24 + hour) * 60 + minute) * minute_ns;
  return true;
}

/// What stands between two signs: `--14886-- rest`, `==14886== rest`.
struct Speech {
  std::uint64_t pid = 0;
  std::uint64_t time_ns = cmt::unknown;
  std::string_view rest;
};

bool take_speech(std::string_view line, std::string_view sign, Speech& speech) {
  if (!take_prefix(line, sign)) return false;
  const std::size_t length = line.find(sign);
  if (length == std::string_view::npos) return false;
  std::string_view inside = line.substr(0, length);
  speech.rest = line.substr(length + sign.size());
  if (!whole_number(take_last_word(inside), speech.pid)) return false;
  return trimmed(inside).empty() || whole_time_stamp(trimmed(inside), speech.time_ns);
}

enum class Found { nothing, event, unknown_call };

/// A call with its result, or with a call inside it and that one's result.
Found take_call(std::string_view text, Event& event) {
  std::string_view name;
  const std::string_view begin = trimmed(text);
  text = begin;
  if (begin.empty() || is_digit(begin.front()) || !take_until(text, '(', name)) return Found::nothing;
  if (name.empty() || name.find(' ') != std::string_view::npos) return Found::nothing;
  if (name == "malloc_usable_size" || name == "mallinfo") return Found::nothing;
  const CallName* const call = find_call(name);
  Arguments arguments;
  if (call == nullptr || !take_arguments(text, arguments) || !arguments.is_closed) return Found::unknown_call;
  if (!event_of(*call, arguments, event)) return Found::unknown_call;
  if (!cmt::traits(event.kind).allocates) return trimmed(text).empty() ? Found::event : Found::unknown_call;
  if (take_prefix(text, " = ")) return whole_address(trimmed(text), event.address) ? Found::event : Found::unknown_call;
  Event inner;
  if (take_call(text, inner) != Found::event) return Found::unknown_call;
  event.address = inner.address;
  return Found::event;
}

class ValgrindParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    Speech speech;
    if (trimmed(line).empty() || take_speech(line, "==", speech) || take_speech(line, "**", speech)) return;
    if (!take_speech(line, "--", speech)) return log.reject_line("--PID-- or ==PID==");
    if (!log.wants_process(speech.pid)) return;
    Event event;
    const Found what = take_call(speech.rest, event);
    if (what == Found::unknown_call) return log.reject_line("a known call with its result");
    if (what == Found::nothing) return;
    if (speech.time_ns != cmt::unknown) event.time_ns = log.since_start(speech.time_ns);
    log.add_event(event);
  }
};

bool identifies_valgrind(std::string_view line) {
  Speech speech;
  Event event;
  return take_speech(line, "--", speech) && take_call(speech.rest, event) == Found::event;
}

}  // namespace

extern const LogFormat valgrind_format{"valgrind", "valgrind --trace-malloc", identifies_valgrind,
                                       make_parser<ValgrindParser>};

}  // namespace trace2cmt
