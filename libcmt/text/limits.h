#pragma once

#include <cstddef>
#include <cstdint>

namespace cmt::text {

/// Limits of format-spec/text.md.
inline constexpr std::size_t label_limit = 4096;
inline constexpr std::size_t metadata_limit = 1024;
inline constexpr std::size_t metadata_key_limit = 256;
inline constexpr std::size_t metadata_value_limit = 65536;
inline constexpr std::uint64_t attribute_limit = (std::uint64_t{1} << 62) - 1;
inline constexpr std::size_t line_limit = 1 << 20;

}  // namespace cmt::text
