#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cmt::command {

/// Nanoseconds of a span of time: "250ms", "1.5s", "10us", "80ns", "2min"; a number alone is in `unit`. Nothing where
/// the text is no such span, or longer than 292 years.
std::optional<std::int64_t> parse_duration(std::string_view text, std::string_view unit);

}  // namespace cmt::command
