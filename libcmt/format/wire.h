#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cmt::format {

/// Constants of format-spec/cmt.md; reader and writer share them.

inline constexpr std::string_view magic = "\x89" "CMT\r\n\x1a\n";
inline constexpr std::uint32_t version = 1;

/// How many bytes tell what an input is: the magic, or a legacy record.
inline constexpr std::size_t longest_start = 16;

}  // namespace cmt::format
