// Writes cells of CSV for fields.h.

#include "toolkit/output/fields.h"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>

#include "libcmt/text/utf8.h"

namespace cmt::output {

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text::to_lines(text);
  return csv_quoted(text);
}

std::string csv_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text::to_lines(text)) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csv_cell(double number) {
  if (!std::isfinite(number)) return {};
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  assert(error == std::errc());
  return {digits.data(), end};
}

}  // namespace cmt::output
