// glibc: MALLOC_TRACE=FILE, LD_PRELOAD=libc_malloc_debug.so.0, and a program that calls mtrace().
//
//     = Start
//     @ ./prog:(main+0x10)[0x401136] + 0x1b6f6b0 0x20         an allocation by any function
//     @ ./prog:[0x401140] - 0x1b6f6b0                         a free
//
//     @ ./prog:[0x401150] < 0x1b6f6d0                         a realloc: its block,
//     @ ./prog:[0x401150] > 0x1b6f6f0 0x40                    and its result
//     @ ./prog:[0x401160] ! 0x1b6f6f0 0x7fffffffffffffff      a realloc that was refused
//     = End
//
// The caller is a stack of one frame: a module, perhaps a function, and an address less that at which the module begins
// in memory. The latter is not in the log. Before glibc 2.35 the address is the whole one. The caller may contain
// blanks, so lines are parsed from their end. The log has no threads, times, frees of NULL, factors of calloc or
// alignments.

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"
#include "toolkit/symbols/demangle.h"

namespace cmt::logs {
namespace {

using cmt::Event;
using cmt::Kind;

struct MtraceRecord {
  char sign = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::string_view caller{};
};

bool take_mtrace_record(std::string_view line, MtraceRecord& record) {
  const std::string_view last = take_last_word(line), middle = take_last_word(line);
  if (middle == "-" || middle == "<") {
    record.sign = middle[0];
    record.caller = line;
    return whole_address(last, record.address);
  }
  const std::string_view first = take_last_word(line);
  if (first != "+" && first != ">" && first != "!") return false;
  record.sign = first[0];
  record.caller = line;
  return whole_address(middle, record.address) && whole_address(last, record.size);
}

/// The stack of `@ ./prog:(main+0x10)[0x401136]`; 0 if it is not of this form.
cmt::StackId stack_of_caller(std::string_view caller, cmt::StackTable& stacks) {
  caller = trimmed(caller);
  const std::size_t bracket = caller.rfind('[');
  std::uint64_t address = 0;
  if (!take_prefix(caller, "@ ") || bracket == caller.npos || !caller.ends_with(']')) return 0;
  const std::string_view digits = caller.substr(bracket - 2 + 1);
  if (!whole_address(digits.substr(0, digits.size() - 1), address)) return 0;
  std::string_view place = caller.substr(0, bracket - 2), function;
  if (const std::size_t open = place.rfind(":("); place.ends_with(')') && open != place.npos) {
    function = place.substr(open + 2, place.size() - open - 3);
    function = function.substr(0, function.rfind('+'));
    place = place.substr(0, open);
  } else if (place.ends_with(':')) {
    place.remove_suffix(1);
  }
  const cmt::ModuleId module = place.empty() ? 0 : stacks.add_module({.path = std::string(place)});
  const cmt::FrameId frame = stacks.add_frame({module, address});
  if (!function.empty() && stacks.names(frame).empty())
    stacks.set_names(frame, std::array{cmt::FrameName{symbols::demangled(std::string(function)), {}, 0}});
  return stacks.add_node({stacks.add_node({0, 0}), frame});
}

class MtraceParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    line = trimmed(line);
    if (line.empty() || line == "= Start" || line == "= End") return;
    MtraceRecord record;
    if (!take_mtrace_record(line, record)) return log.reject_line("+, -, <, > or ! with an address");
    const std::optional<std::uint64_t> given = std::exchange(given_, std::nullopt);
    if (!given && record.sign == '>') return log.reject_line("'<' before '>'");
    if (given && record.sign != '>') log.reject_line("'>' behind '<'");
    stack_ = log.stacks() != nullptr ? stack_of_caller(record.caller, *log.stacks()) : 0;
    add(record, given.value_or(record.address), log);
  }

  void end(ParsedLog& log) override {
    if (given_) log.reject_line("'>' behind '<'");
  }

 private:
  void add(const MtraceRecord& record, std::uint64_t given, ParsedLog& log) {
    switch (record.sign) {
      case '+':
        return log.add_event({.kind = Kind::malloc, .size = record.size, .address = record.address, .stack = stack_});
      case '-':
        return log.add_event({.kind = Kind::free, .old_address = record.address, .stack = stack_});
      case '<':
        given_ = record.address;
        return;
      case '>':
        return log.add_event({.kind = Kind::realloc,
                              .size = record.size,
                              .address = record.address,
                              .old_address = given,
                              .stack = stack_});
      default:
        return log.add_event(
            {.kind = Kind::realloc, .size = record.size, .old_address = record.address, .stack = stack_});
    }
  }

  cmt::StackId stack_ = 0;              // of the line
  std::optional<std::uint64_t> given_;  // the block of a realloc whose result is in the next line
};

bool identifies_mtrace(std::string_view line) {
  MtraceRecord record;
  return line == "= Start" || ((line.starts_with("@ ") || line.find(" 0x") == 1) && take_mtrace_record(line, record));
}

}  // namespace

extern const LogFormat mtrace_format{.name = "mtrace",
                                     .recorder = "glibc mtrace",
                                     .identifies = identifies_mtrace,
                                     .make_parser = make_parser<MtraceParser>,
                                     .has_stacks = true};

}  // namespace cmt::logs
