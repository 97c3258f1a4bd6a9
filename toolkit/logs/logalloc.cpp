// Firefox: MALLOC_LOG=FILE with the replace-malloc library logalloc.
//
//     18545 18545 malloc(32)=0x7f90495120e0
//     18545 18546 realloc(0x7f90495120e0,64)=0x7f9049512200
//     18545 18546 free(0x7f9049512200)
//     18545 18545 jemalloc_stats()
//
// Older logs have no thread: `18545 malloc(32)=0x7f90495120e0`. Firefox's logalloc_munge.py makes logs smaller. It
// replaces pids, threads and pointers by numbers, and uses the numbers again after a free. Firefox's sample is so:
//
//     1 1 malloc(32)=#1
//     1 1 realloc(#1,64)=#1

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
namespace {

using cmt::Event;

constexpr char munged = '#';

struct LogallocRecord {
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
  std::string_view name;
  std::string_view rest;  ///< after the opening parenthesis
};

bool take_logalloc_record(std::string_view line, LogallocRecord& record) {
  std::string_view call;
  if (!take_until(line, '(', call)) return false;
  record.rest = line;
  record.name = take_last_word(call);
  if (!whole_number(take_word(call), record.pid)) return false;
  record.tid = record.pid;
  const std::string_view tid = take_word(call);
  return trimmed(call).empty() && (tid.empty() || whole_number(tid, record.tid));
}

/// Functions of the allocator that neither allocate nor free.
bool is_other_call(std::string_view name) { return name.starts_with("jemalloc_") || name == "malloc_usable_size"; }

bool take_event(const LogallocRecord& record, Event& event) {
  const CallName* const call = find_call(record.name);
  std::string numbers(record.rest);
  std::erase(numbers, munged);
  std::string_view rest = numbers;
  Arguments arguments;
  if (call == nullptr || !take_arguments(rest, arguments) || !arguments.is_closed) return false;
  if (!event_of(*call, arguments, event)) return false;
  if (!cmt::traits(event.kind).allocates) return trimmed(rest).empty();
  return take_prefix(rest, "=") && whole_c_number(trimmed(rest), event.address);
}

class LogallocParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (trimmed(line).empty()) return;
    LogallocRecord record;
    Event event;
    if (!take_logalloc_record(line, record)) return log.reject_line("PID TID CALL(ARGUMENTS)");
    if (!log.wants_process(record.pid)) return;
    if (is_other_call(record.name)) return log.leave_out(record.name);
    const bool is_munged = record.rest.find(munged) != std::string_view::npos;
    if (is_munged && !any_address_) log.set_names_only();
    if (is_munged && any_address_) return log.reject_line("an address, as in the lines before");
    any_address_ |= record.rest.find("0x") != std::string_view::npos;
    if (!take_event(record, event)) return log.reject_line("a known call with its result behind '='");
    event.thread = log.thread_number(record.tid);
    log.add_event(event);
  }

 private:
  bool any_address_ = false;
};

/// `=` follows the parenthesis at once.
bool identifies_logalloc(std::string_view line) {
  LogallocRecord record;
  Event event;
  if (line.empty() || !is_digit(line.front()) || !take_logalloc_record(line, record)) return false;
  return record.name == "jemalloc_stats" ||
         ((line.find(")=0x") != std::string_view::npos || line.find(")=#") != std::string_view::npos) &&
          take_event(record, event));
}

}  // namespace

extern const LogFormat logalloc_format{"logalloc", "Firefox logalloc", identifies_logalloc,
                                       make_parser<LogallocParser>};

}  // namespace cmt::logs
