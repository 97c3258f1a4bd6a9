#include "toolkit/command/duration.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace cmt::command {
namespace {

constexpr std::pair<std::string_view, double> units[] = {{"ns", 1},  {"us", 1e3},   {"ms", 1e6},
                                                         {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};

std::optional<double> nanoseconds_of(std::string_view unit) {
  for (const auto& [name, nanoseconds] : units) {
    if (name == unit) return nanoseconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text, std::string_view unit) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view given(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const auto nanoseconds = nanoseconds_of(given.empty() ? unit : given);
  if (!nanoseconds || number * *nanoseconds >= 9.2e18) return std::nullopt;
  return std::llround(number * *nanoseconds);
}

}  // namespace cmt::command
