#include "toolkit/process/figures.h"

#include <charconv>

namespace cmt::process {
namespace {

std::optional<std::uint64_t> first_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto digits = text.find_first_of(base == 16 ? "0123456789abcdef" : "0123456789");
  if (digits == text.npos) return std::nullopt;
  std::from_chars(text.data() + digits, text.data() + text.size(), value, base);
  return value;
}

}  // namespace

std::optional<std::uint64_t> find_figure(std::string_view text, std::string_view key, int base) {
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (!begins_line || text.substr(at + key.size(), 1) != ":") continue;
    const std::string_view rest = text.substr(at + key.size());
    return first_number(rest.substr(0, rest.find('\n')), base);
  }
  return std::nullopt;
}

}  // namespace cmt::process
