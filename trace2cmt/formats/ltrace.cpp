// ltrace -f -e malloc+free+calloc+realloc+…, and operator new and delete as _Znwm+_ZdlPv+….
//
//     [pid 12] prog->malloc(10)                        = 0x55d44e3922a0     on a terminal
//     12 prog->free(0x55d44e3922a0)                    = <void>             with -o FILE
//
//     12 prog->malloc(40 <unfinished ...>
//     13 prog->free(0x55d44e3922c0)                    = <void>
//
//     12 <... malloc resumed> )                        = 0x55d44e3922e0
//
// Without -f there is no number. -t, -tt, -ttt and -r put a time before the call, and -i its caller. A call within
// another call of the same thread is part of that call: the malloc inside operator new is no event of its own. A free
// becomes an event when it begins, an allocation when it returns, so that no address is live twice.
//
// ltrace shows four arguments of a function that it does not know, and never shows the block of posix_memalign. Threads
// and processes look alike. The parser takes all for threads of one process, unless --pid chooses one.

#include <vector>

#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace cmt::trace2cmt {
namespace {

using cmt::Event;
using cmt::Kind;

constexpr std::size_t depth_limit = 256;

/// A line, divided into the call and the parts before it.
struct Line {
  std::uint64_t id = 0;
  bool has_id = false;
  std::uint64_t time_ns = cmt::unknown;
  bool is_time_of_day = false;
  std::string_view call;
};

bool take_pid(std::string_view& line, Line& taken) {
  std::string_view rest = line;
  if (take_prefix(rest, "[pid ")) {
    std::string_view pid;
    if (!take_until(rest, ']', pid) || !whole_number(trimmed(pid), taken.id)) return false;
  } else if (!whole_number(take_word(rest), taken.id)) {
    return false;
  }
  line = rest;
  return true;
}

Line take_line(std::string_view text) {
  Line line;
  text = trimmed(text);
  line.has_id = take_pid(text, line);
  text = trimmed(text);
  std::string_view rest = text;
  const std::string_view word = take_word(rest);
  line.is_time_of_day = whole_time_of_day(word, line.time_ns);
  if (line.is_time_of_day || whole_seconds(word, line.time_ns)) {
    text = trimmed(rest);
  } else {
    line.time_ns = cmt::unknown;
  }
  std::string_view caller;
  if (text.starts_with("[0x") && take_until(text, ']', caller)) text = trimmed(text);
  line.call = text;
  return line;
}

/// `prog->malloc(` or `malloc(`: the function's name.
bool take_name(std::string_view& text, std::string_view& name) {
  if (!take_until(text, '(', name)) return false;
  if (const std::size_t arrow = name.rfind("->"); arrow != std::string_view::npos) name.remove_prefix(arrow + 2);
  return !name.empty() && name.find(' ') == std::string_view::npos;
}

bool is_process_event(std::string_view call) { return call.starts_with("+++ ") || call.starts_with("--- "); }

/// Whether the call returns in a later line. ltrace writes `no return` if the thread was stopped meanwhile.
bool is_unfinished(std::string_view text) {
  return text.ends_with("<unfinished ...>") || text.ends_with("<no return ...>");
}

/// posix_memalign(&block, alignment, size) is shown with all its arguments, unlike in other tools' logs.
bool event_of_call(const CallName& call, Arguments arguments, Event& event) {
  if (call.kind == Kind::posix_memalign && arguments.count > 2) {
    arguments.values[0] = arguments.values[1];
    arguments.values[1] = arguments.values[2];
  }
  return event_of(call, arguments, event);
}

class LtraceParser : public LogParser {
 public:
  void parse(std::string_view text, ParsedLog& log) override {
    const Line line = take_line(text);
    if (line.call.empty() || !log.wants_thread(line.id)) return;
    thread_ = log.thread_number(line.id);
    time_ns_ = time_of(line, log);
    if (thread_ >= calls_.size()) calls_.resize(thread_ + 1);
    if (is_process_event(line.call)) {
      if (line.has_id && line.call.starts_with("+++ exited")) add({.kind = Kind::thread_exit}, log);
    } else if (line.call.starts_with("<... ")) {
      resume(line.call.substr(5), log);
    } else {
      begin(line.call, log);
    }
  }

 private:
  /// A call that has not returned yet.
  struct Pending {
    const CallName* call = nullptr;  ///< nullptr: a function that find_call() does not know
    Event event;
  };

  void begin(std::string_view text, ParsedLog& log) {
    Pending pending;
    std::string_view name;
    Arguments arguments;
    if (!take_name(text, name)) return log.reject_line("a call");
    pending.call = find_call(name);
    if (pending.call != nullptr &&
        (!take_arguments(text, arguments) || !event_of_call(*pending.call, arguments, pending.event))) {
      return log.reject_line("numbers for arguments");
    }
    const bool is_inside = is_inside_call();
    if (is_unfinished(text)) {
      if (calls_[thread_].size() < depth_limit) calls_[thread_].push_back(pending);
      if (pending.call != nullptr && !is_inside && !allocates(pending)) add(pending.event, log);
      return;
    }
    if (pending.call == nullptr || is_inside) return;
    if (!allocates(pending)) return add(pending.event, log);
    finish(pending, text, log);
  }

  /// `malloc resumed> ) = 0x55d44e3922e0`.
  void resume(std::string_view text, ParsedLog& log) {
    const std::string_view name = take_word(text);
    std::vector<Pending>& calls = calls_[thread_];
    const CallName* const call = find_call(name);
    if (calls.empty() || calls.back().call != call) return log.reject_line("a call that was begun by this thread");
    const Pending pending = calls.back();
    calls.pop_back();
    if (call != nullptr && !is_inside_call() && allocates(pending)) finish(pending, text, log);
  }

  /// An allocation that has returned.
  void finish(Pending pending, std::string_view text, ParsedLog& log) {
    const std::string_view result = take_last_word(text);
    std::uint64_t value = 0;
    if (take_last_word(text) != "=" || !whole_c_number(result, value)) return log.reject_line("'=' and the result");
    if (pending.call->kind == Kind::posix_memalign) {
      if (value == 0) return log.reject_line("a block: ltrace does not show that of posix_memalign");
      value = 0;
    }
    pending.event.address = value;
    add(pending.event, log);
  }

  static bool allocates(const Pending& pending) { return cmt::traits(pending.event.kind).allocates; }

  bool is_inside_call() const {
    for (const Pending& pending : calls_[thread_]) {
      if (pending.call != nullptr) return true;
    }
    return false;
  }

  void add(Event event, ParsedLog& log) const {
    event.thread = thread_;
    event.time_ns = time_ns_;
    log.add_event(event);
  }

  /// A line's time is the time since 1970, the time of day, or the time since the line before.
  std::uint64_t time_of(const Line& line, ParsedLog& log) {
    if (line.time_ns == cmt::unknown) return cmt::unknown;
    if (line.time_ns >= wall_clock_ns) return log.since_unix_start(line.time_ns);
    if (line.is_time_of_day) return log.since_start(line.time_ns);
    return log.since_start(elapsed_ns_ += line.time_ns);
  }

  std::uint32_t thread_ = 0;  // of this line
  std::uint64_t time_ns_ = cmt::unknown;
  std::uint64_t elapsed_ns_ = 0;             // the sum of the times that -r shows
  std::vector<std::vector<Pending>> calls_;  // by thread, the innermost last
};

bool identifies_ltrace(std::string_view text) {
  const Line line = take_line(text);
  std::string_view call = line.call, name;
  if (call.starts_with("<... ")) return call.find(" resumed>") != std::string_view::npos;
  if (call.starts_with("+++ exited (status ")) return true;
  const bool has_arrow = call.find("->") < call.find('(');
  if (!take_name(call, name) || find_call(name) == nullptr) return false;
  return has_arrow || call.ends_with("<void>") || call.ends_with("<unfinished ...>");
}

}  // namespace

extern const LogFormat ltrace_format{"ltrace", "ltrace", identifies_ltrace, make_parser<LtraceParser>};

}  // namespace cmt::trace2cmt
