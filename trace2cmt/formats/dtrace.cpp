// The DTrace logs of CHERI's memory-alloc-tracing, of every generation. Columns are separated by tabs.
//
//     @record-type:call-trace⇥timestamp-unix-ns⇥callstack⇥tid⇥name⇥args⇥result⇥alloc-stack⇥cpu-time-ns
//     call-trace⇥1536334807907404599⇥libc.so.7`malloc+0x10⇥100123⇥malloc⇥96⇥81d21e100⇥Malloc⇥1000
//     aspace-sample⇥1536334807907404700⇥…                            other records are skipped
//
//     #timestamp-unix-ns⇥callstack⇥name⇥args⇥result                  (a) August to October 2018; (b) with tid
//     1536334807907404599⇥0x50a0805 0x14⇥malloc⇥96⇥81d21e100
//
//     call-trace⇥1536334807907404599⇥50a0805 14⇥malloc⇥96⇥81d21e100  (c) no line names the columns
//
//     malloc(96): 81d21e100 1536334807907404599⇥1000⇥100123⇥1        raw: then frames, a line each, and an empty one
//                   libc.so.7`malloc+0x10
//
// The line that names the columns may come again with other columns, so they are looked up by name. Sizes, counts and
// alignments are decimal, addresses hexadecimal without 0x; a free has no result.

#include <algorithm>
#include <array>
#include <utility>

#include "trace2cmt/formats/call_names.h"
#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace trace2cmt {
namespace {

using cmt::Event;

constexpr std::size_t none = ~std::size_t{0};
constexpr std::string_view record_type = "@record-type:";

/// System calls, which the logs contain too.
constexpr std::array<std::string_view, 11> system_calls{"mmap",     "munmap",   "mremap", "brk",   "sbrk",  "madvise",
                                                        "mprotect", "minherit", "shmat",  "shmdt", "revoke"};

/// The indexes of the columns that are used, from 0.
struct ColumnIndexes {
  std::size_t time = none, tid = none, name = none, args = none, result = none;
};

/// From a line of the columns' names.
ColumnIndexes indexes_in(std::string_view names) {
  ColumnIndexes columns;
  for (std::size_t index = 0; !names.empty(); ++index) {
    std::string_view name;
    if (!take_until(names, '\t', name)) name = std::exchange(names, {});
    name = trimmed(name);
    if (name == "timestamp-unix-ns") columns.time = index;
    if (name == "tid") columns.tid = index;
    if (name == "name") columns.name = index;
    if (name == "args") columns.args = index;
    if (name == "result") columns.result = index;
  }
  return columns;
}

constexpr ColumnIndexes unnamed_columns{.time = 1, .tid = none, .name = 3, .args = 4, .result = 5};

/// The texts in those columns of a line.
struct Fields {
  std::string_view time, tid, name, args, result;
};

Fields fields_of(std::string_view line, const ColumnIndexes& columns) {
  Fields fields;
  for (std::size_t index = 0; !line.empty(); ++index) {
    std::string_view field;
    if (!take_until(line, '\t', field)) field = std::exchange(line, {});
    if (index == columns.time) fields.time = field;
    if (index == columns.tid) fields.tid = field;
    if (index == columns.name) fields.name = field;
    if (index == columns.args) fields.args = field;
    if (index == columns.result) fields.result = field;
  }
  return fields;
}

/// Splits `malloc(96): 81d21e100 1536…⇥1000⇥100123⇥1`.
bool take_raw(std::string_view line, Fields& fields) {
  if (!take_until(line, '(', fields.name) || find_call(fields.name) == nullptr) return false;
  if (!take_until(line, ')', fields.args)) return false;
  if (take_prefix(line, ":")) fields.result = take_word(line);
  fields.time = take_word(line);
  take_word(line);
  fields.tid = take_word(line);
  std::uint64_t number = 0;
  return whole_number(fields.time, number) && whole_number(fields.tid, number);
}

class DtraceParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      is_in_frames_ = false;
    } else if (take_prefix(line, record_type)) {
      name_columns(line);
    } else if (line.starts_with('#')) {
      if (line.starts_with("#timestamp-unix-ns\t")) bare_columns_ = indexes_in(line.substr(1));
    } else if (is_digit(line.front())) {
      parse_call(fields_of(line, bare_columns_), log);
    } else if (line.starts_with("call-trace\t")) {
      parse_call(fields_of(line, call_columns_), log);
    } else {
      parse_other(line, log);
    }
  }

 private:
  void name_columns(std::string_view names) {
    if (names.starts_with("call-trace\t")) call_columns_ = indexes_in(names);
  }

  void parse_other(std::string_view line, ParsedLog& log) {
    Fields fields;
    if (take_raw(line, fields)) {
      is_in_frames_ = true;
      return parse_call(fields, log);
    }
    if (is_in_frames_ || line.find('\t') < line.find('(')) return;  // a frame, or a record of another type
    log.reject_line("a record of DTrace");
  }

  void parse_call(const Fields& fields, ParsedLog& log) {
    for (const std::string_view name : system_calls) {
      if (fields.name == name) return;
    }
    const CallName* const call = find_call(fields.name);
    if (call == nullptr) return log.reject_line("the name of a known call");
    Arguments arguments;
    Event event;
    std::string_view rest = fields.args;
    std::uint64_t time_ns = 0, tid = 0;
    if (!take_plain_arguments(rest, *call, arguments) || !trimmed(rest).empty() || !event_of(*call, arguments, event)) {
      return log.reject_line("the call's arguments");
    }
    if (!fields.time.empty() && !whole_number(fields.time, time_ns)) return log.reject_line("a time in nanoseconds");
    if (!fields.tid.empty() && !whole_number(fields.tid, tid)) return log.reject_line("a thread's number");
    const bool has_result = !trimmed(fields.result).empty();
    if (has_result && !whole_address(trimmed(fields.result), event.address)) return log.reject_line("a result");
    if (!cmt::traits(event.kind).allocates) event.address = 0;
    event.thread = log.thread_number(tid);
    if (!fields.time.empty()) event.time_ns = log.since_unix_start(time_ns);
    log.add_event(event);
  }

  ColumnIndexes call_columns_ = unnamed_columns;  // of lines that begin with their type
  ColumnIndexes bare_columns_{.time = 0, .tid = none, .name = 2, .args = 3, .result = 4};
  bool is_in_frames_ = false;
};

bool identifies_dtrace(std::string_view line) {
  Fields fields;
  return line.starts_with(record_type) || line.starts_with("call-trace\t") ||
         line.starts_with("#timestamp-unix-ns\t") || take_raw(line, fields);
}

}  // namespace

extern const LogFormat dtrace_format{"dtrace", "DTrace, memory-alloc-tracing", identifies_dtrace,
                                     make_parser<DtraceParser>};

}  // namespace trace2cmt
