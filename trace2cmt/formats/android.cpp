// Android: bionic's malloc_debug with the option record_allocs.
//
//     202: malloc 0xb4827400 1024
//     202: calloc 0xb4827800 4 16 5361402 5361498              count, size; when it began and ended, in ns
//     202: realloc 0xb4840a60 0xb48390a0 80                   the new block first
//     202: memalign 0xb4841000 64 100                         whichever aligned call it was
//     202: free 0xb4840a60
//     202: thread_done 0x0

#include <array>

#include "trace2cmt/formats/line_parts.h"
#include "trace2cmt/formats/log_format.h"

namespace trace2cmt {
namespace {

using cmt::Event;
using cmt::Kind;

struct Operation {
  std::string_view name;
  Kind kind;
  std::size_t numbers;  ///< behind the address
};

constexpr std::array operations{
    Operation{"malloc", Kind::malloc, 1},     Operation{"free", Kind::free, 0},
    Operation{"realloc", Kind::realloc, 2},   Operation{"calloc", Kind::calloc, 2},
    Operation{"memalign", Kind::memalign, 2}, Operation{"thread_done", Kind::thread_exit, 0}};

const Operation* find_operation(std::string_view name) {
  for (const Operation& operation : operations) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

struct AndroidRecord {
  std::uint64_t thread = 0;
  const Operation* operation = nullptr;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 4> numbers{};
  std::size_t count = 0;
};

bool take_android_record(std::string_view line, AndroidRecord& record) {
  std::string_view thread;
  if (!take_until(line, ':', thread) || !whole_number(trimmed(thread), record.thread)) return false;
  record.operation = find_operation(take_word(line));
  if (record.operation == nullptr || !whole_address(take_word(line), record.address)) return false;
  const bool is_realloc = record.operation->kind == Kind::realloc;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (record.count == record.numbers.size()) return false;
    std::uint64_t& number = record.numbers[record.count++];
    if (!(is_realloc && record.count == 1 ? whole_address(word, number) : whole_number(word, number))) return false;
  }
  return record.count == record.operation->numbers || record.count == record.operation->numbers + 2;
}

Event event_of(const AndroidRecord& record) {
  Event event{.kind = record.operation->kind};
  switch (event.kind) {
    case Kind::free:
      event.old_address = record.address;
      return event;
    case Kind::thread_exit:
      return event;
    case Kind::malloc:
      event.size = record.numbers[0];
      break;
    case Kind::calloc:
      event.count = record.numbers[0];
      event.size = record.numbers[1];
      break;
    case Kind::memalign:
      event.alignment = record.numbers[0];
      event.size = record.numbers[1];
      break;
    default:
      event.old_address = record.numbers[0];
      event.size = record.numbers[1];
  }
  event.address = record.address;
  return event;
}

class AndroidParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (trimmed(line).empty()) return;
    AndroidRecord record;
    if (!take_android_record(line, record)) return log.reject_line("TID: CALL ADDRESS and its numbers");
    Event event = event_of(record);
    event.thread = log.thread_number(record.thread);
    if (record.count > record.operation->numbers) {
      // A free is noted as it begins and an allocation as it ends: between them nobody else has the address.
      const bool at_end = cmt::traits(event.kind).allocates;
      const std::uint64_t began = log.since_start(record.numbers[record.count - 2]);
      event.time_ns = at_end ? log.since_start(record.numbers[record.count - 1]) : began;
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

}  // namespace trace2cmt
