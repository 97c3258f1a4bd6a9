// Android: bionic's malloc_debug with the option record_allocs.
//
//     202: malloc 0xb4827400 1024
//     202: calloc 0xb4827800 4 16 5361402 5361498              count, size; when it began and ended, in ns
//
//     202: realloc 0xb4840a60 0xb48390a0 80                   the new block first
//     202: memalign 0xb4841000 64 100                         any aligned call
//     202: free 0xb4840a60
//
//     202: thread_done 0x0 5361498                            in later versions with the time of the end

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
namespace {

struct AndroidRecord {
  std::uint64_t thread = 0;
  cmt::Event event;
  bool has_times = false;
  std::uint64_t began_ns = 0, ended_ns = 0;
};

bool take_android_call(std::string_view& line, std::string_view name, cmt::Event& event) {
  std::uint64_t address = 0;
  if (!whole_address(take_word(line), address)) return false;
  event.kind = cmt::Kind::thread_exit;
  if (name == "thread_done") return true;
  const CallName* const call = find_call(name);
  if (call == nullptr) return false;
  Arguments arguments;
  if (call->arguments == "p") {
    arguments = {.values = {address}, .count = 1};
  } else if (!take_plain_arguments(line, *call, arguments)) {
    return false;
  }
  if (!event_of(*call, arguments, event)) return false;
  if (cmt::traits(event.kind).allocates) event.address = address;
  return true;
}

bool take_android_record(std::string_view line, AndroidRecord& record) {
  std::string_view thread;
  if (!take_until(line, ':', thread) || !whole_number(trimmed(thread), record.thread)) return false;
  const std::string_view name = take_word(line);
  if (!take_android_call(line, name, record.event)) return false;
  record.has_times = !trimmed(line).empty();
  if (!record.has_times) return true;
  if (!whole_number(take_word(line), record.began_ns)) return false;
  if (record.event.kind == cmt::Kind::thread_exit && trimmed(line).empty()) return true;
  return whole_number(take_word(line), record.ended_ns) && trimmed(line).empty();
}

class AndroidParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (trimmed(line).empty()) return;
    AndroidRecord record;
    if (!take_android_record(line, record)) return log.reject_line("TID: CALL ADDRESS and its numbers");
    cmt::Event event = record.event;
    event.thread = log.thread_number(record.thread);
    if (record.has_times) {
      // A free is recorded when it begins and an allocation when it ends: between these, no other block has the
      // address.
      const std::uint64_t began_ns = log.since_start(record.began_ns);
      event.time_ns = cmt::traits(event.kind).allocates ? log.since_start(record.ended_ns) : began_ns;
    }
    log.add_event(event);
  }
};

bool identifies_android(std::string_view line) {
  AndroidRecord record;
  return !line.empty() && is_digit(line.front()) && take_android_record(line, record);
}

}  // namespace

extern const LogFormat android_format{"android", "Android malloc_debug record_allocs", identifies_android,
                                      make_parser<AndroidParser>};

}  // namespace cmt::logs
