// The traces of the CS:APP malloc lab: blocks have numbers, not addresses.
//
//     20000            four lines: suggested bytes of heap, ids, operations, weight
//     2
//     4
//     1
//     a 0 512          id, size
//     r 0 640
//     a 1 16
//     f 0

#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"

namespace cmt::logs {
namespace {

using cmt::Event;
using cmt::Kind;

/// An id names a block until it is freed; 0 would be NULL.
bool take_id(std::string_view& line, std::uint64_t& name) {
  const std::string_view word = take_word(line);
  name = 0;
  return word == "-1" || (whole_number(word, name) && ++name != 0);
}

bool take_event(std::string_view line, Event& event) {
  const std::string_view operation = take_word(line);
  if (operation != "a" && operation != "r" && operation != "f") return false;
  std::uint64_t name = 0;
  if (!take_id(line, name)) return false;
  event.kind = operation == "a" ? Kind::malloc : operation == "r" ? Kind::realloc : Kind::free;
  if (event.kind != Kind::malloc) event.old_address = name;
  if (event.kind == Kind::free) return trimmed(line).empty();
  event.address = name;
  return whole_number(take_word(line), event.size) && trimmed(line).empty();
}

class RepParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    line = trimmed(line);
    if (line.empty()) return;
    std::uint64_t number = 0;
    if (header_lines_ < 4) {
      ++header_lines_;
      log.set_names_only();
      if (whole_number(line, number)) return;
      header_lines_ = 4;
    }
    Event event;
    if (!take_event(line, event)) return log.reject_line("a ID SIZE, r ID SIZE or f ID");
    if (event.kind == Kind::realloc && event.size == 0) event.address = 0;
    log.add_event(event);
  }

 private:
  int header_lines_ = 0;
};

bool identifies_rep(std::string_view line) {
  Event event;
  return line.size() > 2 && line[1] == ' ' && (is_digit(line[2]) || line == "f -1") && take_event(line, event);
}

}  // namespace

extern const LogFormat rep_format{"rep", "malloc lab", identifies_rep, make_parser<RepParser>, false};

}  // namespace cmt::logs
