// glibc: MALLOC_TRACE=FILE, LD_PRELOAD=libc_malloc_debug.so.0, and a program that calls mtrace().
//
//     = Start
//     @ ./prog:(main+0x10)[0x401136] + 0x1b6f6b0 0x20         an allocation by any function
//     @ ./prog:[0x401140] - 0x1b6f6b0                         a free
//     @ ./prog:[0x401150] < 0x1b6f6d0                         a realloc: its block,
//     @ ./prog:[0x401150] > 0x1b6f6f0 0x40                    and its result
//     @ ./prog:[0x401160] ! 0x1b6f6f0 0x7fffffffffffffff      a realloc that was refused
//     = End
//
// The caller may contain blanks, so lines are parsed from their end. The log has no threads, times, frees of NULL,
// factors of calloc or alignments.

#include <optional>
#include <utility>

#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace trace2cmt {
namespace {

using cmt::Event;
using cmt::Kind;

struct MtraceRecord {
  char sign = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

bool take_mtrace_record(std::string_view line, MtraceRecord& record) {
  const std::string_view last = take_last_word(line), middle = take_last_word(line);
  if (middle == "-" || middle == "<") {
    record.sign = middle[0];
    return whole_address(last, record.address);
  }
  const std::string_view first = take_last_word(line);
  if (first != "+" && first != ">" && first != "!") return false;
  record.sign = first[0];
  return whole_address(middle, record.address) && whole_address(last, record.size);
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
    add(record, given.value_or(record.address), log);
  }

  void end(ParsedLog& log) override {
    if (given_) log.reject_line("'>' behind '<'");
  }

 private:
  void add(const MtraceRecord& record, std::uint64_t given, ParsedLog& log) {
    switch (record.sign) {
      case '+':
        return log.add_event({.kind = Kind::malloc, .size = record.size, .address = record.address});
      case '-':
        return log.add_event({.kind = Kind::free, .old_address = record.address});
      case '<':
        given_ = record.address;
        return;
      case '>':
        return log.add_event(
            {.kind = Kind::realloc, .size = record.size, .address = record.address, .old_address = given});
      default:
        return log.add_event({.kind = Kind::realloc, .size = record.size, .old_address = record.address});
    }
  }

  std::optional<std::uint64_t> given_;  // the block of a realloc whose result is in the next line
};

bool identifies_mtrace(std::string_view line) {
  MtraceRecord record;
  return line == "= Start" || ((line.starts_with("@ ") || line.find(" 0x") == 1) && take_mtrace_record(line, record));
}

}  // namespace

extern const LogFormat mtrace_format{"mtrace", "glibc mtrace", identifies_mtrace, make_parser<MtraceParser>};

}  // namespace trace2cmt
