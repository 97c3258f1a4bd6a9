// The DTrace logs of CHERI's memory-alloc-tracing, of every generation. Columns are separated by tabs.
//
//     @record-type:call-trace⇥timestamp-unix-ns⇥callstack⇥tid⇥name⇥args⇥result⇥alloc-stack⇥cpu-time-ns
//     call-trace⇥1536334807907404599⇥libc.so.7`malloc+0x10⇥100123⇥malloc⇥96⇥81d21e100⇥Malloc⇥1000
//     aspace-sample⇥1536334807907404700⇥…                            other records are counted
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
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"
#include "toolkit/symbols/demangle.h"

namespace cmt::logs {
namespace {

using cmt::Event;

constexpr std::size_t no_column = ~std::size_t{0};
constexpr std::string_view record_type = "@record-type:";

/// System calls, which the logs contain too.
constexpr std::array<std::string_view, 11> system_calls{"mmap",     "munmap",   "mremap", "brk",   "sbrk",  "madvise",
                                                        "mprotect", "minherit", "shmat",  "shmdt", "revoke"};

/// The columns that are used.
struct Column {
  enum : std::size_t { time, tid, name, args, result, callstack, count };
  static constexpr std::array<std::string_view, count> names{"timestamp-unix-ns", "tid", "name", "args", "result",
                                                             "callstack"};
};

/// Their indexes in a line, from 0.
using ColumnIndexes = std::array<std::size_t, Column::count>;
constexpr ColumnIndexes unnamed_columns{1, no_column, 3, 4, 5, 2}, unnamed_bare_columns{0, no_column, 2, 3, 4, 1};

/// Calls `visit` with each text between tabs, and its index.
template <class Visit>
void for_each_column(std::string_view line, const Visit& visit) {
  std::string_view text;
  std::size_t index = 0;
  for (; take_until(line, '\t', text); ++index) visit(index, text);
  visit(index, line);
}

/// The indexes of the columns in a line of column names.
ColumnIndexes indexes_in(std::string_view names) {
  ColumnIndexes columns;
  columns.fill(no_column);
  for_each_column(names, [&](std::size_t index, std::string_view text) {
    const auto* const found = std::find(Column::names.begin(), Column::names.end(), trimmed(text));
    if (found != Column::names.end()) columns[static_cast<std::size_t>(found - Column::names.begin())] = index;
  });
  return columns;
}

/// The texts in these columns of a line, by Column. A missing text, as in a line that was cut off, has no data().
using Fields = std::array<std::string_view, Column::count>;

Fields fields_of(std::string_view line, const ColumnIndexes& columns) {
  Fields fields;
  for_each_column(line, [&](std::size_t index, std::string_view text) {
    for (std::size_t column = 0; column < Column::count; ++column) {
      if (columns[column] == index) fields[column] = text;
    }
  });
  return fields;
}

/// Splits `malloc(96): 81d21e100 1536…⇥1000⇥100123⇥1`.
bool take_raw(std::string_view line, Fields& fields) {
  if (!take_until(line, '(', fields[Column::name]) || find_call(fields[Column::name]) == nullptr) return false;
  if (!take_until(line, ')', fields[Column::args])) return false;
  if (take_prefix(line, ":")) fields[Column::result] = take_word(line);
  fields[Column::time] = take_word(line);
  take_word(line);
  fields[Column::tid] = take_word(line);
  std::uint64_t number = 0;
  return whole_number(fields[Column::time], number) && whole_number(fields[Column::tid], number);
}

/// The stacks of a column `callstack`: frames between blanks, the innermost first. A frame is an address or
/// `module`function+offset`. The second form has no address in the log, so the frame gets the next number as address.
class DtraceStacks {
 public:
  cmt::StackId find(std::string_view column, cmt::StackTable& stacks) {
    cmt::StackId stack = 0;
    for (std::string_view word = take_last_word(column); !word.empty(); word = take_last_word(column)) {
      stack = stacks.add_node({stack, find_frame(word, stacks)});
    }
    return stack;
  }

  /// The same of the lines of the raw form.
  cmt::StackId find(const std::vector<std::string>& frames, cmt::StackTable& stacks) {
    cmt::StackId stack = 0;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      stack = stacks.add_node({stack, find_frame(*frame, stacks)});
    return stack;
  }

 private:
  cmt::FrameId find_frame(std::string_view word, cmt::StackTable& stacks) {
    std::uint64_t address = 0;
    if (whole_address(word, address)) return stacks.add_frame({0, address});
    const auto [entry, is_new] = symbols_.try_emplace(std::string(word));
    if (!is_new) return entry->second;
    std::string_view path;
    const bool has_module = take_until(word, '`', path);
    const cmt::ModuleId module = has_module ? stacks.add_module({.path = std::string(path)}) : 0;
    entry->second = stacks.add_frame({module, symbols_.size(), true});
    std::string function(word.substr(0, word.rfind('+')));
    for (std::size_t at; (at = function.find("---")) != function.npos;) function.replace(at, 3, " ");  // a blank
    function = symbols::demangled(function);
    stacks.set_names(entry->second, std::array{cmt::FrameName{function, {}, 0}});
    return entry->second;
  }

  std::unordered_map<std::string, cmt::FrameId> symbols_;
};

class DtraceParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_in_frames_ && !line.empty() && is_blank(line.front())) {
      frames_.emplace_back(trimmed(line));
      return;
    }
    end_frames(log);
    if (line.empty()) return;
    if (take_prefix(line, record_type)) {
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

  void end(ParsedLog& log) override { end_frames(log); }

 private:
  /// The call of the raw form before this line has all of its frames.
  void end_frames(ParsedLog& log) {
    is_in_frames_ = false;
    if (!held_) return;
    if (log.stacks() != nullptr) held_->stack = stacks_.find(frames_, *log.stacks());
    log.add_event(*held_);
    held_.reset();
  }

  void name_columns(std::string_view names) {
    types_.emplace(names.substr(0, names.find('\t')));
    if (names.starts_with("call-trace\t")) call_columns_ = indexes_in(names);
  }

  void parse_other(std::string_view line, ParsedLog& log) {
    Fields fields;
    if (take_raw(line, fields)) {
      is_in_frames_ = true;
      frames_.clear();
      return parse_call(fields, log);
    }
    const std::string_view type = line.substr(0, std::min(line.find('\t'), line.size()));
    const bool is_type = types_.empty() ? type.size() < line.size() && is_name(type) : types_.contains(type);
    is_type ? log.leave_out(type) : log.reject_line("a record of DTrace");
  }

  /// Whether a text can be a record's type, if no line names the types.
  static bool is_name(std::string_view type) {
    return std::all_of(type.begin(), type.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  }

  void parse_call(const Fields& fields, ParsedLog& log) {
    for (const std::string_view name : system_calls) {
      if (fields[Column::name] == name) return log.leave_out(name);
    }
    const CallName* const call = find_call(fields[Column::name]);
    if (call == nullptr) return log.reject_line("the name of a known call");
    Arguments arguments;
    Event event;
    std::string_view rest = fields[Column::args];
    std::uint64_t time_ns = 0, tid = 0;
    if (!take_plain_arguments(rest, *call, arguments) || !trimmed(rest).empty() || !event_of(*call, arguments, event)) {
      return log.reject_line("the call's arguments");
    }
    if (!fields[Column::time].empty() && !whole_number(fields[Column::time], time_ns))
      return log.reject_line("a time in nanoseconds");
    if (!fields[Column::tid].empty() && !whole_number(fields[Column::tid], tid))
      return log.reject_line("a thread's number");
    const bool has_result = !trimmed(fields[Column::result]).empty();
    const bool needs_result = cmt::traits(event.kind).allocates && fields[Column::result].data() == nullptr;
    if (needs_result || (has_result && !whole_address(trimmed(fields[Column::result]), event.address)))
      return log.reject_line("a result");
    if (!cmt::traits(event.kind).allocates) event.address = 0;
    event.thread = log.thread_number(tid);
    if (!fields[Column::time].empty()) event.time_ns = log.since_unix_start(time_ns);
    if (is_in_frames_) {
      held_ = event;
      return;
    }
    if (log.stacks() != nullptr) event.stack = stacks_.find(fields[Column::callstack], *log.stacks());
    log.add_event(event);
  }

  ColumnIndexes call_columns_ = unnamed_columns;  // of lines that begin with their type
  ColumnIndexes bare_columns_ = unnamed_bare_columns;
  std::set<std::string, std::less<>> types_;  // of records, as far as lines name their columns
  bool is_in_frames_ = false;                 // the line after a call of the raw form
  std::optional<Event> held_;                 // that call
  std::vector<std::string> frames_;           // its frames, the innermost first
  DtraceStacks stacks_;
};

bool identifies_dtrace(std::string_view line) {
  Fields fields;
  return line.starts_with(record_type) || line.starts_with("call-trace\t") ||
         line.starts_with("#timestamp-unix-ns\t") || take_raw(line, fields);
}

}  // namespace

extern const LogFormat dtrace_format{"dtrace", "DTrace, memory-alloc-tracing", identifies_dtrace,
                                     make_parser<DtraceParser>};

}  // namespace cmt::logs
