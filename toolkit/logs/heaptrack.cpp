// heaptrack, file formats 0 to 3: the raw form, which the tracker writes, and the interpreted form, which heaptrack
// makes of it. Numbers are hexadecimal without 0x.
//
//     v 10400 3                       version of heaptrack and of the format
//
//     x d /usr/bin/prog               program, its length first
//     X ./prog --fast                 command
//     I 1000 5e298d                   page size, pages of the machine
//
//     m 1 -                           raw: modules loaded from here on
//     m b /lib/libm.so 7fdd01500000 0 f5c0 10000 733e1    address, and offset and size of each segment; x: the program
//
//     t 7fdd01571b9f 0                raw: a node of the tree of call stacks: return address, parent, from 1
//     s b libm.so.6.1                 interpreted: a string, its length first, from 1
//
//     i 7fdd01571b9f 2 3 4 1f 5 4 2a       an address: module, then function, file and line, inlined ones first
//     t 1 0                                a node: address's number, parent
//
//     + 18 9 55a49953b2b0             raw: an allocation's size, call stack, address
//     - 55a49953b2b0                       a free
//     a 18 9                          interpreted: size and stack get the next number, from 0
//
//     + 2                                  an allocation like number 2
//     - 2                                  a free of one
//     c 1f                            milliseconds since the start
//     R 3ef                           resident pages
//
// Before format 3 texts have no length: `s main()`, `x /usr/bin/prog`, `m /lib/libm.so 7fdd01500000 0 f5c0`. Format 0
// states no number, and its interpreted form has addresses.
//
// heaptrack writes a realloc as a free and an allocation, and neither alignments nor threads. The interpreted form has
// no addresses, so a free does not say which of several live blocks with the same number it ends. The parser takes the
// newest, because most blocks are short-lived.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "cmt/stacks.h"
#include "toolkit/logs/line_parts.h"
#include "toolkit/logs/log_format.h"
#include "toolkit/symbols/demangle.h"

namespace cmt::logs {
namespace {

using cmt::Event;
using cmt::Kind;

constexpr std::uint64_t millisecond_ns = 1'000'000;
constexpr std::uint64_t last_format = 3, first_counted_format = 3;

/// The call stacks of a heaptrack log. The raw form has modules and addresses. The interpreted form has names too, but
/// only the paths of modules. A module that is not in the next list of modules was unloaded.
class HeaptrackStacks {
 public:
  /// Whether a record is one of modules or stacks, by its first character.
  static bool takes(char sign) { return sign == 'm' || sign == 't' || sign == 's' || sign == 'i'; }

  /// Takes such a record. Returns false for one that is not understood, which is then an empty text or stack.
  bool take(char sign, std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks);

  /// Takes the path of the program, which modules name "x".
  bool take_program(std::string_view line) { return take_text(line, program_); }
  const std::string& program() const { return program_; }

  /// To be called with each record that is not of a module: the list of modules is complete.
  void end_modules(std::uint64_t time_ns, cmt::StackTable& stacks) {
    if (!before_.empty()) settle_modules(time_ns, stacks);
  }

  /// Whether each text has its length before it. To be called before the first text.
  void set_counted(bool is_counted) { is_counted_ = is_counted; }

  /// The stack of a node's number; 0 if the log does not have it.
  cmt::StackId find(std::uint64_t number) const { return number < nodes_.size() ? nodes_[number] : 0; }

 private:
  struct LoadedModule {
    cmt::ModuleId id;
    std::uint64_t begin, end;
  };

  bool take_module(std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks);
  void begin_modules() { before_ = std::exchange(loaded_, {}); }
  void settle_modules(std::uint64_t time_ns, cmt::StackTable& stacks);
  bool take_node(std::string_view line, cmt::StackTable& stacks);
  bool take_string(std::string_view line);
  bool take_address(std::string_view line, cmt::StackTable& stacks);
  bool take_names(std::string_view line, cmt::FrameId frame, cmt::StackTable& stacks) const;
  bool take_path(std::string_view& line, std::string& path) const;
  bool take_text(std::string_view line, std::string& text) const;
  cmt::ModuleId module_at(std::uint64_t address) const;

  bool is_counted_ = true;
  std::string program_;
  std::vector<LoadedModule> loaded_, before_;
  std::vector<cmt::StackId> nodes_{0};
  std::vector<std::string> strings_{{}};
  std::vector<cmt::FrameId> addresses_{0};  // of the interpreted form
};

/// A text with its length before it, and a blank between them.
bool take_counted(std::string_view& line, std::string_view& taken) {
  std::uint64_t length = 0;
  if (!take_hex(line, length) || line.size() <= length) return false;
  taken = line.substr(1, length);
  line.remove_prefix(length + 1);
  return true;
}

/// A module's path, and then its numbers: the address, and offset and size of each segment. A path without its length
/// ends at the last word that is no number, or one later: there is an odd number of numbers.
bool HeaptrackStacks::take_path(std::string_view& line, std::string& path) const {
  std::string_view taken, before = trimmed(line);
  if (is_counted_) {
    if (!take_counted(line, taken)) return false;
    path = taken;
    return true;
  }
  std::size_t numbers = 0;
  std::uint64_t number = 0;
  for (std::string_view left = before; whole_number(take_last_word(left), number, 16); ++numbers) before = left;
  line.remove_prefix(static_cast<std::size_t>(before.data() + before.size() - line.data()));
  path = trimmed(before);
  if (numbers != 0 && numbers % 2 == 0) path.append(" ").append(take_word(line));
  return true;
}

/// The text of a record that has nothing else.
bool HeaptrackStacks::take_text(std::string_view line, std::string& text) const {
  std::string_view taken = line.substr(std::min<std::size_t>(1, line.size()));
  if (is_counted_ && !take_counted(line, taken)) return false;
  text = taken;
  return !is_counted_ || line.empty();
}

bool HeaptrackStacks::take(char sign, std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks) {
  if (sign == 'm') return take_module(line, time_ns, stacks);
  if (sign == 't') return take_node(line, stacks);
  return sign == 's' ? take_string(line) : take_address(line, stacks);
}

bool HeaptrackStacks::take_module(std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks) {
  std::string path;
  std::uint64_t base = 0, offset = 0, size = 0;
  if (!take_path(line, path)) return false;
  if (path == "-") return begin_modules(), true;
  if (!take_hex(line, base)) return false;
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  while (!trimmed(line).empty()) {
    if (!take_hex(line, offset) || !take_hex(line, size)) return false;
    begin = std::min(begin, base + offset);
    end = std::max(end, base + offset + size);
  }
  if (begin >= end) return true;
  const std::string& name = path == "x" ? program_ : path;
  const auto known = std::find_if(before_.begin(), before_.end(), [&](const LoadedModule& each) {
    return each.begin == begin && each.end == end && stacks.module(each.id).path == name;
  });
  if (known != before_.end()) {
    loaded_.push_back(*known);
  } else {
    const cmt::ModuleId id =
        stacks.append_module({.path = name, .begin = begin, .end = end, .bias = base, .loaded_ns = time_ns});
    loaded_.push_back({id, begin, end});
  }
  return true;
}

/// The list of modules is complete: modules that are only in the list before were unloaded.
void HeaptrackStacks::settle_modules(std::uint64_t time_ns, cmt::StackTable& stacks) {
  for (const LoadedModule& module : before_) {
    const bool stays = std::any_of(loaded_.begin(), loaded_.end(), [&](auto& each) { return each.id == module.id; });
    if (!stays) stacks.set_unloaded(module.id, time_ns);
  }
  before_.clear();
}

cmt::ModuleId HeaptrackStacks::module_at(std::uint64_t address) const {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(), [&](const LoadedModule& module) {
    return address > module.begin && address <= module.end;
  });
  return found == loaded_.end() ? 0 : found->id;
}

bool HeaptrackStacks::take_node(std::string_view line, cmt::StackTable& stacks) {
  std::uint64_t place = 0, parent = 0;
  cmt::StackId& node = nodes_.emplace_back(0);
  if (!take_hex(line, place) || !take_hex(line, parent) || parent >= nodes_.size() - 1) return false;
  node = nodes_[parent];
  const bool is_interpreted = addresses_.size() > 1;
  if (is_interpreted && place >= addresses_.size()) return false;
  const cmt::FrameId frame = is_interpreted ? addresses_[place] : stacks.add_frame({module_at(place), place});
  if (frame != 0 || parent == 0) node = stacks.add_node({nodes_[parent], frame});
  return true;
}

/// heaptrack demangles names of C++, and those of Rust as if they were of C++, or not at all.
bool HeaptrackStacks::take_string(std::string_view line) {
  std::string& string = strings_.emplace_back();
  if (!take_text(line, string)) return false;
  string = symbols::demangled(string);
  return true;
}

bool HeaptrackStacks::take_address(std::string_view line, cmt::StackTable& stacks) {
  std::uint64_t address = 0, module = 0;
  addresses_.push_back(0);
  if (!take_hex(line, address) || !take_hex(line, module) || module >= strings_.size()) return false;
  const cmt::ModuleId id = module == 0 ? 0 : stacks.add_module({.path = strings_[module]});
  addresses_.back() = stacks.add_frame({id, address});
  return take_names(line, addresses_.back(), stacks);
}

bool HeaptrackStacks::take_names(std::string_view line, cmt::FrameId frame, cmt::StackTable& stacks) const {
  std::vector<cmt::FrameName> names;
  while (!trimmed(line).empty()) {
    std::uint64_t function = 0, file = 0, number = 0;
    if (!take_hex(line, function) || function >= strings_.size()) return false;
    const bool has_file = !trimmed(line).empty();
    if (has_file && (!take_hex(line, file) || file >= strings_.size() || !take_hex(line, number))) return false;
    names.push_back({strings_[function], strings_[file], static_cast<std::uint32_t>(number)});
  }
  if (!names.empty()) stacks.set_names(frame, names);
  return true;
}

class HeaptrackParser : public LogParser {
 public:
  void parse(std::string_view line, ParsedLog& log) override {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return;
    const char sign = line.front();
    line.remove_prefix(1);
    if (log.stacks() != nullptr) {
      if (sign != 'm') stacks_.end_modules(time_ns_, *log.stacks());
      if (HeaptrackStacks::takes(sign) && !stacks_.take(sign, line, time_ns_, *log.stacks()))
        return log.reject_line("a module or a part of a call stack");
    }
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
    if (sign == 'v') {
      read_version(line, log);
    } else if (sign == 'X') {
      log.add_metadata("command", trimmed(line));
    } else if (sign == 'x') {
      if (!stacks_.take_program(line)) return log.reject_line("x LENGTH PROGRAM");
      log.add_metadata("program", stacks_.program());
    } else if (sign == 'I') {
      std::uint64_t number = 0;
      if (!take_hex(line, number) || number == 0) return log.reject_line("I PAGE_SIZE PAGES");
      page_size_ = number;
      log.add_metadata("page_size", std::to_string(number));
    } else if (std::string_view("tismAS#").find(sign) == std::string_view::npos) {
      log.reject_line("a record of heaptrack");
    }
  }

  void read_version(std::string_view line, ParsedLog& log) {
    std::uint64_t version = 0, format = 0;
    if (!take_hex(line, version)) return log.reject_line("v VERSION FORMAT");
    if (trimmed(line).empty()) {
      format = version == 0x10200 ? 1 : 0;  // what became 1.0.0 had this version and no format
    } else if (!take_hex(line, format)) {
      return log.reject_line("v VERSION FORMAT");
    }
    const std::string recorder = "heaptrack " + std::to_string(version >> 16) + "." +
                                 std::to_string(version >> 8 & 255) + "." + std::to_string(version & 255);
    if (format > last_format) {
      throw UnknownFormat("format " + std::to_string(format) + " of " + recorder + "; this reader knows formats 0 to " +
                          std::to_string(last_format));
    }
    stacks_.set_counted(format >= first_counted_format);
    log.add_metadata("recorder", recorder);
  }

  std::uint64_t time_ns_ = 0;
  std::uint64_t page_size_ = 4096;
  std::uint64_t last_name_ = 0;
  std::vector<Info> infos_;
  HeaptrackStacks stacks_;
};

bool identifies_heaptrack(std::string_view line) {
  std::uint64_t version = 0, format = 0;
  if (!take_prefix(line, "v ") || !take_hex(line, version) || version < 0x100) return false;
  return trimmed(line).empty() || (take_hex(line, format) && trimmed(line).empty());
}

}  // namespace

extern const LogFormat heaptrack_format{.name = "heaptrack",
                                        .recorder = "heaptrack",
                                        .identifies = identifies_heaptrack,
                                        .make_parser = make_parser<HeaptrackParser>,
                                        .has_stacks = true};

}  // namespace cmt::logs
