// heaptrack 1.x, file format 3: the raw form, which the tracker writes, and the interpreted form, which heaptrack makes
// of it. Numbers are hexadecimal without 0x.
//
//     v 10400 3                       version of heaptrack and of the format
//     x d /usr/bin/prog               program, its length first
//     X ./prog --fast                 command line
//     I 1000 5e298d                   page size, pages of the machine
//     m 1 -                           raw: the modules that are loaded from here on follow
//     m b /lib/libm.so 7fdd01500000 0 f5c0 10000 733e1    address, and offset and size of each segment; x: the program
//     t 7fdd01571b9f 0                raw: a node of the tree of call stacks: return address, parent, from 1
//     s b libm.so.6.1                 interpreted: a string, its length first, from 1
//     i 7fdd01571b9f 2 3 4 1f 5 4 2a       an address: module, then function, file and line, the inlined ones first
//     t 1 0                                a node: address's number, parent
//     + 18 9 55a49953b2b0             raw: an allocation's size, call stack, address
//     - 55a49953b2b0                       a free
//     a 18 9                          interpreted: size and call stack get the next number, from 0
//     + 2                                  an allocation like number 2
//     - 2                                  a free of one
//     c 1f                            milliseconds since the start
//     R 3ef                           resident pages
//
// heaptrack writes a realloc as a free and an allocation, and neither alignments nor threads. The interpreted form has
// no addresses: it does not tell which of several live blocks with the same number was freed. The newest is taken,
// because most blocks are short-lived.

#include <vector>

#include "trace2cmt/formats/heaptrack_stacks.h"
#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace cmt::trace2cmt {
namespace {

using cmt::Event;
using cmt::Kind;

constexpr std::uint64_t millisecond_ns = 1'000'000;

class HeaptrackParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    line = trimmed(line);
    if (line.empty()) return;
    const char sign = line.front();
    line.remove_prefix(1);
    if (log.stacks() != nullptr && stacks_.take(sign, line, time_ns_, *log.stacks())) return;
    switch (sign) {
      case '+':
        return allocate(line, log);
      case '-':
        return release(line, log);
      case 'a':
        return add_info(line, log);
      case 'c':
        return tick(line, log);
      case 'R':
        return sample(line, log);
      default:
        return other(sign, line, log);
    }
  }

 private:
  /// Blocks of one size and call stack, in the interpreted form.
  struct Info {
    std::uint64_t size = 0;
    cmt::StackId stack = 0;
    std::vector<std::uint64_t> live;  ///< names
  };

  void allocate(std::string_view line, ParsedLog& log) {
    Event event{.kind = Kind::malloc, .time_ns = time_ns_};
    std::uint64_t first = 0, stack = 0;
    if (!take_hex(line, first)) return log.reject_line("+ and hexadecimal numbers");
    if (!trimmed(line).empty()) {
      event.size = first;
      if (!take_hex(line, stack) || !take_hex(line, event.address)) return log.reject_line("+ SIZE STACK ADDRESS");
      event.stack = stacks_.find(stack);
      return log.add_event(event);
    }
    if (first >= infos_.size()) return log.reject_line("+ and a number that an 'a' line gave");
    event.size = infos_[first].size;
    event.stack = infos_[first].stack;
    event.address = ++last_name_;
    infos_[first].live.push_back(event.address);
    log.add_event(event);
  }

  void release(std::string_view line, ParsedLog& log) {
    Event event{.kind = Kind::free, .time_ns = time_ns_};
    std::uint64_t given = 0;
    if (!take_hex(line, given)) return log.reject_line("- and a hexadecimal number");
    if (!log.names_only()) {
      event.old_address = given;
      return log.add_event(event);
    }
    if (given >= infos_.size()) return log.reject_line("- and a number that an 'a' line gave");
    std::vector<std::uint64_t>& live = infos_[given].live;
    event.old_address = live.empty() ? ++last_name_ : live.back();
    if (!live.empty()) live.pop_back();
    log.add_event(event);
  }

  void add_info(std::string_view line, ParsedLog& log) {
    std::uint64_t size = 0, stack = 0;
    if (!take_hex(line, size)) return log.reject_line("a SIZE STACK");
    if (infos_.empty()) log.set_names_only();
    take_hex(line, stack);
    infos_.push_back({size, stacks_.find(stack), {}});
  }

  void tick(std::string_view line, ParsedLog& log) {
    std::uint64_t milliseconds = 0;
    if (!take_hex(line, milliseconds) || milliseconds >> 40 != 0) return log.reject_line("c MILLISECONDS");
    time_ns_ = milliseconds * millisecond_ns;
  }

  void sample(std::string_view line, ParsedLog& log) {
    std::uint64_t pages = 0;
    if (!take_hex(line, pages)) return log.reject_line("R PAGES");
    log.add_event({.kind = Kind::sample, .size = pages * page_size_, .time_ns = time_ns_});
  }

  void other(char sign, std::string_view line, ParsedLog& log) {
    std::uint64_t number = 0;
    if (sign == 'v' && take_hex(line, number)) {
      log.add_metadata("recorder", "heaptrack " + std::to_string(number >> 16) + "." +
                                       std::to_string(number >> 8 & 255) + "." + std::to_string(number & 255));
    } else if (sign == 'X') {
      log.add_metadata("command", trimmed(line));
    } else if (sign == 'x') {
      if (take_hex(line, number)) log.add_metadata("program", trimmed(line));
    } else if (sign == 'I') {
      if (!take_hex(line, number) || number == 0) return log.reject_line("I PAGE_SIZE PAGES");
      page_size_ = number;
      log.add_metadata("page_size", std::to_string(number));
    } else if (std::string_view("tismASd#").find(sign) == std::string_view::npos) {
      log.reject_line("a record of heaptrack");
    }
  }

  std::uint64_t time_ns_ = 0;
  std::uint64_t page_size_ = 4096;
  std::uint64_t last_name_ = 0;
  std::vector<Info> infos_;
  HeaptrackStacks stacks_;
};

bool identifies_heaptrack(std::string_view line) {
  std::uint64_t version = 0, format = 0;
  if (!take_prefix(line, "v ")) return false;
  return take_hex(line, version) && version >= 0x10000 && take_hex(line, format) && trimmed(line).empty();
}

}  // namespace

extern const LogFormat heaptrack_format{"heaptrack", "heaptrack", identifies_heaptrack, make_parser<HeaptrackParser>};

}  // namespace cmt::trace2cmt
