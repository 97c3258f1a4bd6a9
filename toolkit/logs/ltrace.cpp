// ltrace -f with -x or -e malloc+free+calloc+realloc+…, and operator new and delete as _Znwm+_ZdlPv+….
//
//     [pid 12] prog->malloc(10)                        = 0x55d44e3922a0     on a terminal, by -e
//     12 prog->free(0x55d44e3922a0)                    = <void>             with -o FILE
//
//     12 malloc@libc.so.6(10)                          = 0x55d44e3922a0     by -x
//     12 prog->operator new(unsigned long)(4, 0, 0)    = 0x55d44e3922a0     with -C
//
//     12 prog->malloc(40 <unfinished ...>
//     13 prog->free(0x55d44e3922c0)                    = <void>
//
//     12 <... malloc resumed> )                        = 0x55d44e3922e0
//
// Without -f there is no number. -t, -tt, -ttt and -r put a time before the call, -i its caller, and -T its duration
// after the result. A call within another call of the same thread is part of that call: the malloc inside operator new
// is no event of its own. A free becomes an event when it begins, an allocation when it returns, so that no address is
// live twice. An operator new that throws never returns.
//
// ltrace shows four arguments of a function that it does not know, and never shows the block of posix_memalign. Threads
// and processes look alike. The parser takes all for threads of one process, unless --pid chooses one.

#include <algorithm>
#include <string>
#include <vector>

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
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
  bool has_duration = false;
  std::string_view call;
};

/// Takes the duration that -T puts after a result, ` <0.000118>`.
bool take_duration(std::string_view& line) {
  std::string_view rest = line, word = take_last_word(rest);
  std::uint64_t ns = 0;
  if (!take_prefix(word, "<") || !word.ends_with('>') || !whole_seconds(word.substr(0, word.size() - 1), ns))
    return false;
  line = trimmed(rest);
  return true;
}

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
  line.has_duration = take_duration(text);
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

/// The length of a demangled name's types, which begin with this parenthesis; 0 if the call's arguments do.
std::size_t types_length(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size() && text[i] != '"' && text[i] != '\''; ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] != ')' || --depth != 0) continue;
    const std::string_view after = text.substr(i + 1);
    const bool ends_call = after.empty() || (is_blank(after.front()) && !after.starts_with(" const"));
    return ends_call ? 0 : i + 1;
  }
  return 0;
}

/// Takes a function's name and the parenthesis after it, without the module: `prog->malloc(`, `malloc@libc.so.6(`,
/// `prog->operator new(unsigned long)(`.
bool take_name(std::string_view& text, std::string_view& name) {
  std::size_t end = text.find('(');
  for (std::size_t types = 1; end != std::string_view::npos && types != 0;) {
    types = types_length(text.substr(end));
    if (types != 0) end = text.find('(', end + types);
  }
  if (end == std::string_view::npos) return false;
  name = text.substr(0, end);
  text.remove_prefix(end + 1);
  const std::size_t arrow = name.find("->");
  if (arrow != std::string_view::npos && !name.substr(0, arrow).ends_with("operator")) name.remove_prefix(arrow + 2);
  name = name.substr(0, name.find('@'));
  const bool has_types = name.find('(') != std::string_view::npos;
  return !name.empty() && (has_types || name.find(' ') == std::string_view::npos);
}

/// glibc's functions have other names too: __libc_malloc.
const CallName* find_function(std::string_view name) {
  take_prefix(name, "__libc_");
  return find_call(name);
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
  /// A call of the allocator that has not returned yet.
  struct Pending {
    const CallName* call = nullptr;
    Event event;
    bool has_failed = false;  ///< the call within it got no memory
  };

  void begin(std::string_view text, ParsedLog& log) {
    Pending pending;
    std::string_view name;
    Arguments arguments;
    if (!take_name(text, name)) return log.reject_line("a call");
    pending.call = find_function(name);
    if (pending.call == nullptr) {
      if (!is_inside_call()) log.leave_out(name);
      return;
    }
    if (!take_arguments(text, arguments) || !event_of_call(*pending.call, arguments, pending.event))
      return log.reject_line("numbers for arguments");
    end_thrown(pending, log);
    const bool is_inside = is_inside_call();
    if (is_unfinished(text)) {
      if (calls_[thread_].size() < depth_limit) calls_[thread_].push_back(pending);
      if (!is_inside && !allocates(pending)) add(pending.event, log);
    } else if (allocates(pending)) {
      finish(pending, text, log);
    } else if (!is_inside) {
      add(pending.event, log);
    }
  }

  /// `malloc resumed> ) = 0x55d44e3922e0`. Calls within the call have ended too.
  void resume(std::string_view text, ParsedLog& log) {
    const std::size_t end = std::min(text.find(" resumed>"), text.size());
    const CallName* const call = find_function(text.substr(0, std::min(end, text.find('@'))));
    if (call == nullptr) return;
    std::vector<Pending>& calls = calls_[thread_];
    const auto found =
        std::find_if(calls.rbegin(), calls.rend(), [&](const Pending& each) { return each.call == call; });
    if (found == calls.rend()) return log.reject_line("a call that was begun by this thread");
    const Pending pending = *found;
    calls.erase(found.base() - 1, calls.end());
    if (allocates(pending)) finish(pending, text.substr(end), log);
  }

  /// An allocation that has returned.
  void finish(Pending pending, std::string_view text, ParsedLog& log) {
    const std::string_view result = take_last_word(text);
    std::uint64_t value = 0;
    if (take_last_word(text) != "=" || !whole_c_number(result, value)) return log.reject_line("'=' and the result");
    if (is_inside_call()) return value == 0 ? fail_enclosing() : void();
    if (pending.call->kind == Kind::posix_memalign) {
      if (value == 0) return log.reject_line("a block: ltrace does not show that of posix_memalign");
      value = 0;
    }
    pending.event.address = value;
    add(pending.event, log);
  }

  /// A call within operator new got no memory. Then operator new throws, and the log has no line for its end, or it
  /// calls malloc again.
  void fail_enclosing() {
    for (auto call = calls_[thread_].rbegin(); call != calls_[thread_].rend() && throws(*call); ++call)
      call->has_failed = true;
  }

  /// Ends the calls of operator new that threw before this call.
  void end_thrown(const Pending& next, ParsedLog& log) {
    std::vector<Pending>& calls = calls_[thread_];
    if (calls.empty() || !calls.back().has_failed) return;
    if (allocates(next) && next.event.size == calls.back().event.size) return;  // a new_handler has made room
    Event outermost;
    for (; !calls.empty() && calls.back().has_failed; calls.pop_back()) outermost = calls.back().event;
    if (calls.empty()) add(outermost, log);
  }

  static bool allocates(const Pending& pending) { return cmt::traits(pending.event.kind).allocates; }

  static bool throws(const Pending& pending) {
    return pending.event.kind == Kind::operator_new || pending.event.kind == Kind::operator_new_array;
  }

  bool is_inside_call() const { return !calls_[thread_].empty(); }

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
  const bool has_module = std::min(call.find("->"), call.find('@')) < call.find('(');
  if (!take_name(call, name) || find_function(name) == nullptr) return false;
  return has_module || line.has_duration || name.ends_with(')') || call.ends_with("<void>") || is_unfinished(call);
}

}  // namespace

extern const LogFormat ltrace_format{"ltrace", "ltrace", identifies_ltrace, make_parser<LtraceParser>};

}  // namespace cmt::logs
