// Writes an event's line from left to right into a buffer with room for the longest line, so that no append checks
// sizes.

#include "libcmt/text/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>

#include "cmt/text.h"
#include "libcmt/text/digits.h"
#include "libcmt/text/scanner.h"
#include "libcmt/text/utf8.h"

namespace cmt {
namespace {

/// The call's name and its parenthesis: "operator new[](". put_line() copies all 24 bytes, since a fixed size is
/// faster.
struct Opening {
  std::array<char, 24> text{};
  std::size_t size = 0;

  constexpr Opening() : Opening("unknown_kind(") {}
  constexpr explicit Opening(std::string_view call) : size(call.size()) {
    std::copy_n(call.begin(), size, text.begin());
  }
};

/// The opening of each kind, by its number. A number that is no kind has the opening of an unknown kind.
constexpr std::array<Opening, kind_limit> openings = [] {
  std::array<Opening, kind_limit> by_kind{};
#define CMT_KIND(name, number, call, traits) by_kind[number] = Opening(call "(");
  CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  return by_kind;
}();

template <std::size_t size>
char* put(char* at, const char (&literal)[size]) {
  std::memcpy(at, literal, size - 1);
  return at + size - 1;
}

char* put_block(char* at, std::uint64_t address, Tag tag) {
  if (tag == 0 || address != 0) at = text::put_hex(at, address);
  if (tag == 0) return at;
  *at++ = '<';
  at = text::put_decimal(at, tag);
  *at++ = '>';
  return at;
}

/// Puts ", " before every argument but the first.
class Arguments {
 public:
  explicit Arguments(char* begin) : begin_(begin) {}
  char* next(char* at) const { return at == begin_ ? at : put(at, ", "); }

 private:
  char* begin_;
};

char* put_arguments(char* at, const Event& event, const KindTraits& kind) {
  const Arguments arguments(at);
  if (kind.is_given()) at = put_block(at, event.old_address, event.old_tag);
  if (event.kind == Kind::pool_free) at = put_block(at, 0, event.pool_block);
  if (kind.aligns) at = text::put_decimal(arguments.next(at), event.alignment);
  if (kind.counts) at = text::put_decimal(arguments.next(at), event.count);
  if (kind.sizes) at = text::put_decimal(arguments.next(at), event.size);
  if (!kind.may_align || is_of_pool(event.kind)) return at;
  if (event.alignment != 0) at = text::put_decimal(put(arguments.next(at), "align="), event.alignment);
  const bool is_nothrow = event.kind == Kind::operator_new_nothrow || event.kind == Kind::operator_new_array_nothrow;
  return is_nothrow ? put(arguments.next(at), "nothrow") : at;
}

/// Writes the part of a line from the closing parenthesis on: the result and the attributes.
char* put_rest(char* at, const Event& event, const KindTraits& kind) {
  *at++ = ')';
  if (kind.allocates) at = put_block(put(at, " = "), event.address, event.tag);
  if (event.kind == Kind::pool_malloc) at = put_block(put(at, " = "), 0, event.pool_block);
  if (event.thread != 0) at = text::put_decimal(put(at, " thread="), event.thread);
  if (event.time_ns != unknown) at = text::put_decimal(put(at, " time="), event.time_ns);
  if (event.usable != unknown) at = text::put_decimal(put(at, " usable="), event.usable);
  if (event.stack != 0) at = text::put_decimal(put(at, " stack="), event.stack);
  return at;
}

bool is_bare(std::string_view value) {
  return !value.empty() &&
         std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '#'; });
}

void append_metadata(std::string& out, std::string_view key, std::string_view value) {
  out += "#cmt ";
  out += key;
  out += '=';
  text::append_value(out, value);
  out += '\n';
}

}  // namespace

void append_line(std::string& out, const Event& event) {
  std::array<char, text::line_room> line;
  const KindTraits& kind = traits(event.kind);
  if (!kind.labels && !is_of_pool(event.kind)) {
    out.append(line.data(), text::put_line(line.data(), event));
    return;
  }
  const Opening& opening = openings[static_cast<std::size_t>(event.kind)];
  out.append(opening.text.data(), opening.size);
  char* const end = put_arguments(line.data(), event, kind);
  out.append(line.data(), end);
  if (end != line.data()) out += ", ";
  text::append_string(out, event.label);
  out.append(line.data(), put_rest(line.data(), event, kind));
}

namespace text {

char* put_line(char* at, const Event& event) {
  const KindTraits& kind = traits(event.kind);
  const Opening& opening = openings[static_cast<std::size_t>(event.kind)];
  std::memcpy(at, opening.text.data(), opening.text.size());
  return put_rest(put_arguments(at + opening.size, event, kind), event, kind);
}

void append_value(std::string& out, std::string_view value) {
  if (is_bare(value)) {
    out += value;
  } else {
    append_string(out, value);
  }
}

void append_number(std::string& out, std::uint64_t number, int base) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  out.append(digits, end);
}

void append_string(std::string& out, std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    const std::size_t known = utf8_length(text);
    length = std::max<std::size_t>(1, known);
    const std::string_view character = text.substr(0, length);
    if (const auto at = escaped_bytes.find(text[0]); at != std::string_view::npos) {
      out += '\\';
      out += escape_letters[at];
    } else if (known == 0 || control_length(text) != 0) {
      for (const char c : character) {
        const auto byte = static_cast<unsigned char>(c);
        out += "\\x";
        out += digits[byte >> 4];
        out += digits[byte & 15];
      }
    } else {
      out += character;
    }
  }
  out += '"';
}

void append_header(std::string& out, const Header& header) {
  if (!header.has_header && header.metadata.empty()) return;
  append_metadata(out, "text", "1");
  for (const auto& [key, value] : header.metadata) append_metadata(out, key, value);
}

std::string start_text(std::uint64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

namespace {

constexpr std::string_view stretch_begin = "#stretch";

/// The fields of a stretch's line, in their order.
template <class Stretch, class Visitor>
void visit_times(Stretch& stretch, Visitor visit) {
  visit(" elapsed=", stretch.elapsed_ns);
  visit(" ran=", stretch.ran_ns);
  visit(" waited=", stretch.waited_ns);
  visit(" held=", stretch.held_ns);
  visit(" busy=", stretch.busy_ns);
}

}  // namespace

std::optional<RunStretch> take_stretch(std::string_view line) {
  if (!line.starts_with(stretch_begin)) return std::nullopt;
  line.remove_prefix(stretch_begin.size());
  RunStretch stretch;
  bool is_right = true;
  visit_times(stretch, [&](std::string_view key, std::uint64_t& ns) {
    is_right = is_right && line.starts_with(key);
    if (!is_right) return;
    const char* const end = line.data() + line.size();
    const auto [rest, error] = std::from_chars(line.data() + key.size(), end, ns);
    is_right = error == std::errc() && ns <= stretch_ns_limit;
    line = {rest, end};
  });
  return is_right ? std::optional(stretch) : std::nullopt;
}

void append_end(std::string& out, const Totals& totals) {
  const Repairs& repairs = totals.repairs;
  for (const RunStretch& stretch : totals.stretches) {
    out += stretch_begin;
    visit_times(stretch, [&out](std::string_view key, std::uint64_t ns) {
      out += key;
      append_number(out, ns);
    });
    out += '\n';
  }
  if (repairs.total() != 0) append_metadata(out, "repairs", std::to_string(repairs.total()));
  for (int i = 0; i < repair_count; ++i) {
    const auto repair = static_cast<Repair>(i);
    if (repairs[repair] == 0) continue;
    append_metadata(out, "repairs_" + std::string(name(repair)), std::to_string(repairs[repair]));
  }
  append_metadata(out, "end", totals.truncated ? "truncated" : "complete");
}

}  // namespace text
}  // namespace cmt
