// Marks are control characters, which print() takes out of all other text.

#include "toolkit/output/style.h"

#include <unistd.h>

#include <cstdlib>

namespace cmt::output {
namespace {

constexpr char bold_mark = '\x01', red_mark = '\x02', end_mark = '\x03';
constexpr std::string_view marks = "\x01\x02\x03";

bool styles_are_used = false;

std::string_view sequence_of(char mark) {
  return mark == bold_mark ? "\x1b[1m" : mark == red_mark ? "\x1b[1;31m" : "\x1b[0m";
}

}  // namespace

void use_styles(bool on) { styles_are_used = on; }

bool output_has_styles() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == 0) && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(STDOUT_FILENO) == 1;
}

std::string styled(std::string_view text, Style style) {
  if (!styles_are_used || text.empty()) return std::string(text);
  return (style == Style::bold ? bold_mark : red_mark) + std::string(text) + end_mark;
}

std::string to_sequences(std::string_view text, std::string (*clean)(std::string_view)) {
  if (!styles_are_used) return clean(text);
  std::string out;
  for (;;) {
    const std::size_t mark = text.find_first_of(marks);
    out += clean(text.substr(0, mark));
    if (mark == text.npos) return out;
    out += sequence_of(text[mark]);
    text.remove_prefix(mark + 1);
  }
}

}  // namespace cmt::output
