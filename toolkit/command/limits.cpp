// Parses the list of --fail-if.

#include "toolkit/command/limits.h"

#include <algorithm>
#include <charconv>

namespace cmt::command {
namespace {

/// "peak+2%".
std::optional<Limit> parse_limit(std::string_view text) {
  const auto plus = text.find('+');
  if (plus == text.npos || !text.ends_with('%')) return std::nullopt;
  Limit limit{.figure = std::string(text.substr(0, plus))};
  const std::string_view digits = text.substr(plus + 1, text.size() - plus - 2);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (error != std::errc() || end != digits.data() + digits.size() || !(percent >= 0 && percent <= 1e6))
    return std::nullopt;
  limit.share = percent / 100;
  return limit;
}

}  // namespace

std::optional<std::vector<Limit>> parse_limits(std::string_view text, const std::vector<std::string>& figures) {
  std::vector<Limit> limits;
  for (;;) {
    const auto comma = text.find(',');
    const auto limit = parse_limit(text.substr(0, comma));
    if (!limit || std::count(figures.begin(), figures.end(), limit->figure) == 0) return std::nullopt;
    const auto is_same = [&](const Limit& other) { return other.figure == limit->figure; };
    if (std::any_of(limits.begin(), limits.end(), is_same)) return std::nullopt;
    limits.push_back(*limit);
    if (comma == text.npos) return limits;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace cmt::command
