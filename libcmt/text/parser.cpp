// Reads one line and makes one event of it.
//
// Nearly all lines of nearly every trace are malloc, realloc and free. So the parser walks a line once, by hand,
// without regular expressions, copies or allocation, in 30 to 40 ns. The table of calls in format-spec/text.md is the
// list of kinds in cmt/kinds.h. The kind decides which arguments a call has. Their order is the same for all kinds:
// block, alignment, count, size. Only operator new and delete name their alignment, after the size.

#include "libcmt/text/parser.h"

#include <algorithm>
#include <array>

#include "libcmt/text/scanner.h"

namespace cmt::text {
namespace {

struct CallName {
  std::string_view name;
  Kind kind;
};

constexpr std::array calls{
#define CMT_KIND(name, number, call, traits) CallName{call, Kind::name},
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
};

/// The first kind that is written with this call.
const CallName* find_call(std::string_view name) {
  const auto* found = std::find_if(calls.begin(), calls.end(), [&](const CallName& c) { return c.name == name; });
  return found == calls.end() ? nullptr : found;
}

/// The same call with one more property. The order of the enum makes this the next kind.
Kind next(Kind kind) { return static_cast<Kind>(static_cast<int>(kind) + 1); }

/// The parse of one line. Each step returns the name of the part that it missed, or an empty view.
class LineParse {
 public:
  LineParse(std::string_view line, Event& event, std::string& label) : scan_(line), event_(event), label_(label) {}

  std::string_view run() {
    std::string_view call;
    if (!scan_.take_until('(', call)) return "a call, as in malloc(8)";
    const CallName* const known = find_call(call);
    if (known == nullptr) return "a known call";
    event_.kind = known->kind;
    if (const auto missed = arguments(); !missed.empty()) return missed;
    if (event_.kind == Kind::pool_malloc) {
      if (!scan_.take('=') || !pool_block()) return "'=' and the result's <number>";
    }
    if (traits(event_.kind).allocates) {
      if (!scan_.take('=')) return "'=' and the result";
      if (!block(event_.address, event_.tag)) return "the result's address, or <tag>";
    }
    return attributes();
  }

 private:
  std::string_view arguments() {
    const KindTraits& kind = traits(event_.kind);
    if (kind.is_given()) {
      if (!block(event_.old_address, event_.old_tag)) return "a block: its address, or <tag>";
      first_ = false;
    }
    if (event_.kind == Kind::pool_free) {
      if (!pool_block()) return "a block's <number>";
      first_ = false;
    }
    if (kind.aligns && !number(event_.alignment)) return "an alignment in decimal";
    if (kind.counts && !number(event_.count)) return "a count in decimal";
    if (kind.sizes && !number(event_.size)) return "a size in decimal";
    if (kind.labels || is_of_pool(event_.kind)) {
      if (!first_ && !scan_.take(',')) return "','";
      if (!scan_.take_string(label_)) return "a quoted string";
      if (label_.size() > label_limit) return "a string of at most 4096 bytes";
      event_.label = label_;
    }
    if (kind.may_align && !is_of_pool(event_.kind)) {
      if (const auto missed = cxx_arguments(); !missed.empty()) return missed;
    }
    return scan_.take(')') ? std::string_view() : "')'";
  }

  /// Parses the arguments after operator new's size or operator delete's block: `, SIZE`, `, align=N`, `, nothrow`.
  std::string_view cxx_arguments() {
    const bool is_delete = traits(event_.kind).releases;
    while (scan_.take(',')) {
      if (scan_.take("align")) {
        if (!scan_.take('=') || !scan_.take_decimal(event_.alignment)) return "an alignment in decimal";
      } else if (!is_delete && scan_.take("nothrow")) {
        event_.kind = next(event_.kind);
        return {};
      } else if (is_delete && !traits(event_.kind).sizes && scan_.take_decimal(event_.size)) {
        event_.kind = next(event_.kind);
      } else {
        return "align=, a size or nothrow";
      }
    }
    return {};
  }

  bool number(std::uint64_t& value) {
    if (!first_ && !scan_.take(',')) return false;
    first_ = false;
    return scan_.take_decimal(value);
  }

  bool block(std::uint64_t& address, Tag& tag) {
    const char c = scan_.peek();
    if (c == '(' || c == 'N') return scan_.take("(nil)") || scan_.take("(null)") || scan_.take("NULL");
    if (c != '<' && !scan_.take_hex(address)) return false;
    if (!scan_.take('<')) return true;
    return scan_.take_decimal(tag) && tag != 0 && scan_.take('>');
  }

  bool pool_block() {
    return scan_.take('<') && scan_.take_decimal(event_.pool_block) && event_.pool_block != 0 && scan_.take('>');
  }

  std::string_view attributes() {
    while (!scan_.at_end()) {
      const std::string_view key = scan_.take_key();
      if (key.empty() || !scan_.take('=')) return "an attribute, as in thread=1";
      if (key == "thread") {
        std::uint64_t thread;
        if (!scan_.take_decimal(thread) || thread > 0xffffffff) return "a thread's number";
        event_.thread = static_cast<std::uint32_t>(thread);
      } else if (key == "time") {
        if (!scan_.take_decimal(event_.time_ns) || event_.time_ns > attribute_limit) return "a time in nanoseconds";
      } else if (key == "usable") {
        if (!scan_.take_decimal(event_.usable) || event_.usable > attribute_limit) return "a usable size in bytes";
      } else if (key == "stack") {
        std::uint64_t stack;
        if (!scan_.take_decimal(stack) || stack > 0xffffffff) return "a stack's number";
        event_.stack = static_cast<StackId>(stack);
      } else if (scan_.peek() == '"') {
        std::string ignored;
        if (!scan_.take_string(ignored)) return "a quoted string";
      } else {
        scan_.take_bare();
      }
    }
    return {};
  }

  Scanner scan_;
  Event& event_;
  std::string& label_;
  bool first_ = true;
};

}  // namespace

const Line& Parser::parse(std::string_view line) {
  Scanner scan(line);
  if (scan.at_end()) {
    line_.sort = Line::Sort::blank;
    if (scan.take("#cmt ")) parse_metadata(line.substr(line.find("#cmt ") + 5));
    return line_;
  }
  line_.event = Event{};
  line_.expected = LineParse(line, line_.event, label_).run();
  line_.sort = line_.expected.empty() ? Line::Sort::event : Line::Sort::wrong;
  return line_;
}

void Parser::parse_metadata(std::string_view rest) {
  Scanner scan(rest);
  line_.sort = Line::Sort::wrong;
  line_.key = scan.take_key();
  line_.expected = "key=value after #cmt";
  if (line_.key.empty() || !scan.take('=')) return;
  if (scan.peek() == '"') {
    if (!scan.take_string(line_.value)) return;
  } else {
    line_.value = scan.take_bare();
  }
  if (!scan.at_end()) return;
  line_.expected = "a value of at most 65536 bytes";
  if (line_.value.size() > metadata_value_limit) return;
  line_.expected = "a key of at most 256 bytes";
  if (line_.key.size() > metadata_key_limit) return;
  line_.sort = Line::Sort::metadata;
}

std::string_view without_annotation(std::string_view line) {
  bool quoted = false;
  const bool may_have_any = line.find('#') != std::string_view::npos;
  for (std::size_t i = 0; may_have_any && i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (line[i] == '#' && !quoted) line = line.substr(0, i);
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r' || line.back() == '\n')) {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace cmt::text
