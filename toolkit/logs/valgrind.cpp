// valgrind --trace-malloc=yes: calls among other messages.
//
//     ==14886== Memcheck, a memory error detector
//
//     --14886-- malloc(10) = 0x4A43040
//     --14886-- calloc(3,8) = 0x4A43090
//     --14886-- memalign(al 64, size 128) = 0x4A439C0
//     --14886-- _ZnwmSt11align_val_t(size 64, al 64) = 0x4D70D80
//     --14886-- _ZdlPvm(0x4D70C80)
//
//     --14886-- realloc(0x4A43960,0)free(0x4A43960)           a call within a call, in one line
//     --14886--  = 0
//     --14886-- realloc(0x0,20)malloc(20) = 0x4A430F0
//
//     --14886-- aligned_alloc(al 32, size 96)malloc(8) = 0x4A43150     new versions: a call without result or line end
//
// With --time-stamp=yes, a time since the start comes before the pid: `--00:00:00:00.512 14886--`. Several processes
// come from --trace-children=yes. The log has no threads.

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
namespace {

using cmt::Event;
using cmt::Kind;

/// Days, hours, minutes and seconds: 00:14:02:01.512.
bool whole_time_stamp(std::string_view word, std::uint64_t& ns) {
  constexpr std::uint64_t day_ns = 24 * 3'600'000'000'000;
  std::string_view days;
  std::uint64_t day = 0;
  if (!take_until(word, ':', days) || !whole_number(days, day) || day > 9999) return false;
  if (word.find('.') == word.npos || !whole_time_of_day(word, ns)) return false;
  ns += day * day_ns;
  return true;
}

/// A line of valgrind, `--14886-- rest` or `==14886== rest`.
struct ValgrindLine {
  std::uint64_t pid = 0;
  std::uint64_t time_ns = cmt::unknown;
  std::string_view rest;
};

bool take_valgrind_line(std::string_view line, std::string_view sign, ValgrindLine& parts) {
  if (!take_prefix(line, sign)) return false;
  const std::size_t length = line.find(sign);
  if (length == std::string_view::npos) return false;
  std::string_view inside = line.substr(0, length);
  parts.rest = line.substr(length + sign.size());
  if (!whole_number(take_last_word(inside), parts.pid)) return false;
  return trimmed(inside).empty() || whole_time_stamp(trimmed(inside), parts.time_ns);
}

enum class CallResult { none, event, unknown_call };

/// Parses a call with its result, or a call with another call inside and the result of that.
CallResult take_call(std::string_view text, Event& event) {
  std::string_view name;
  const std::string_view begin = trimmed(text);
  text = begin;
  if (begin.empty() || is_digit(begin.front()) || !take_until(text, '(', name)) return CallResult::none;
  if (name.empty() || name.find(' ') != std::string_view::npos) return CallResult::none;
  if (name == "malloc_usable_size" || name == "mallinfo") return CallResult::none;
  const CallName* const call = find_call(name);
  Arguments arguments;
  if (call == nullptr || !take_arguments(text, arguments) || !arguments.is_closed) return CallResult::unknown_call;
  if (!event_of(*call, arguments, event)) return CallResult::unknown_call;
  if (!cmt::traits(event.kind).allocates) return trimmed(text).empty() ? CallResult::event : CallResult::unknown_call;
  if (take_prefix(text, " = "))
    return whole_address(trimmed(text), event.address) ? CallResult::event : CallResult::unknown_call;
  Event inner;
  if (take_call(text, inner) != CallResult::event) return CallResult::unknown_call;
  event.address = inner.address;
  return CallResult::event;
}

/// Takes a call off a line that has another one after it. Returns its name; empty if the line has only one call, or its
/// second is part of the first.
std::string_view take_unanswered(std::string_view& text) {
  std::string_view rest = trimmed(text), name, arguments;
  if (!take_until(rest, '(', name) || name.find(' ') != name.npos || name.starts_with("realloc")) return {};
  if (!take_until(rest, ')', arguments) || rest.empty() || is_blank(rest.front())) return {};
  text = rest;
  return name;
}

class ValgrindParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    ValgrindLine parts;
    if (trimmed(line).empty() || take_valgrind_line(line, "==", parts) || take_valgrind_line(line, "**", parts)) return;
    if (!take_valgrind_line(line, "--", parts)) return log.reject_line("--PID-- or ==PID==");
    if (!log.wants_process(parts.pid)) return;
    Event event;
    for (std::string_view name; !(name = take_unanswered(parts.rest)).empty();) {
      if (find_call(name) != nullptr) log.reject_line("a known call with its result");
    }
    const CallResult result = take_call(parts.rest, event);
    if (result == CallResult::unknown_call) return log.reject_line("a known call with its result");
    if (result == CallResult::none) return;
    if (parts.time_ns != cmt::unknown) event.time_ns = log.since_start(parts.time_ns);
    log.add_event(event);
  }
};

bool identifies_valgrind(std::string_view line) {
  ValgrindLine parts;
  Event event;
  return take_valgrind_line(line, "--", parts) && take_call(parts.rest, event) == CallResult::event;
}

}  // namespace

extern const LogFormat valgrind_format{"valgrind", "valgrind --trace-malloc", identifies_valgrind,
                                       make_parser<ValgrindParser>};

}  // namespace cmt::logs
