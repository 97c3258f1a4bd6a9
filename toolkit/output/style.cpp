// Marks are control characters, which print() takes out of all other text.

#include "toolkit/output/style.h"

#include <algorithm>
#include <iterator>

namespace cmt::output {
namespace {

constexpr char begin_mark = '\x01', end_mark = '\x02';
constexpr std::string_view marks = "\x01\x02";

bool is_bold_used = false;

}  // namespace

void use_bold(bool on) { is_bold_used = on; }

std::string bold(std::string_view text) {
  if (!is_bold_used || text.empty()) return std::string(text);
  return begin_mark + std::string(text) + end_mark;
}

std::string without_styles(std::string_view text) {
  std::string plain;
  std::remove_copy_if(text.begin(), text.end(), std::back_inserter(plain),
                      [](char c) { return c == begin_mark || c == end_mark; });
  return plain;
}

std::string to_sequences(std::string_view text, std::string (*clean)(std::string_view)) {
  if (!is_bold_used) return clean(text);
  std::string out;
  for (;;) {
    const std::size_t mark = text.find_first_of(marks);
    out += clean(text.substr(0, mark));
    if (mark == text.npos) return out;
    out += text[mark] == begin_mark ? "\x1b[1m" : "\x1b[0m";
    text.remove_prefix(mark + 1);
  }
}

}  // namespace cmt::output
