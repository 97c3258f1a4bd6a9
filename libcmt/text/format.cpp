#include "libcmt/text/format.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "cmt/text.h"
#include "libcmt/text/scanner.h"
#include "libcmt/text/utf8.h"

namespace cmt {
namespace {

using text::append_number;

void append_block(std::string& out, std::uint64_t address, Tag tag) {
  if (tag == 0 || address != 0) append_number(out, address, 16);
  if (tag == 0) return;
  out += '<';
  append_number(out, tag);
  out += '>';
}

/// The call's name with its parenthesis, as it is written: "operator new[](".
std::string_view opening(Kind kind) {
  switch (kind) {
#define CMT_KIND(name, number, call, traits) \
  case Kind::name:                           \
    return call "(";
    CMT_KINDS(CMT_KIND)
#undef CMT_KIND
  }
  return "unknown_kind(";
}

/// Appends ", " before every argument but the first.
class Arguments {
 public:
  explicit Arguments(std::string& out) : out_(out) {}

  std::string& next() {
    if (!first_) out_ += ", ";
    first_ = false;
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_arguments(std::string& out, const Event& event) {
  const KindTraits& kind = traits(event.kind);
  Arguments arguments(out);
  if (kind.is_given()) append_block(arguments.next(), event.old_address, event.old_tag);
  if (kind.aligns) append_number(arguments.next(), event.alignment);
  if (kind.counts) append_number(arguments.next(), event.count);
  if (kind.sizes) append_number(arguments.next(), event.size);
  if (kind.labels) text::append_string(arguments.next(), event.label);
  if (kind.may_align && event.alignment != 0) append_number(arguments.next() += "align=", event.alignment);
  if (event.kind == Kind::operator_new_nothrow || event.kind == Kind::operator_new_array_nothrow) {
    arguments.next() += "nothrow";
  }
}

void append_attribute(std::string& out, std::string_view key, std::uint64_t value) {
  out += ' ';
  out += key;
  out += '=';
  append_number(out, value);
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
  out += opening(event.kind);
  append_arguments(out, event);
  out += ')';
  if (traits(event.kind).allocates) {
    out += " = ";
    append_block(out, event.address, event.tag);
  }
  if (event.thread != 0) append_attribute(out, "thread", event.thread);
  if (event.time_ns != unknown) append_attribute(out, "time", event.time_ns);
  if (event.usable != unknown) append_attribute(out, "usable", event.usable);
  if (event.stack != 0) append_attribute(out, "stack", event.stack);
}

namespace text {

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

void append_end(std::string& out, const Repairs& repairs, bool truncated) {
  if (repairs.total() != 0) append_metadata(out, "repairs", std::to_string(repairs.total()));
  for (int i = 0; i < repair_count; ++i) {
    const auto repair = static_cast<Repair>(i);
    if (repairs[repair] == 0) continue;
    append_metadata(out, "repairs_" + std::string(name(repair)), std::to_string(repairs[repair]));
  }
  append_metadata(out, "end", truncated ? "truncated" : "complete");
}

}  // namespace text
}  // namespace cmt
