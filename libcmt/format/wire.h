#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cmt::format {

/// Constants and limits of format-spec/cmt.md; reader and writer share them.

inline constexpr std::string_view magic =
    "\x89"
    "CMT\r\n\x1a\n";
inline constexpr std::uint32_t version = 1;

/// How many bytes tell what an input is: the magic, or a legacy record.
inline constexpr std::size_t longest_start = 16;

inline constexpr std::uint32_t header_size_limit = 1 << 27;
inline constexpr std::uint32_t section_header_limit = 1 << 26;
inline constexpr std::uint64_t metadata_limit = 1024;
inline constexpr std::uint64_t metadata_key_limit = 256;
inline constexpr std::uint64_t metadata_value_limit = 65536;
inline constexpr std::uint64_t block_events_limit = 1 << 20;
inline constexpr std::uint64_t streams_limit = 64;
inline constexpr std::uint64_t stream_size_limit = 1 << 28;
inline constexpr std::uint64_t traits_limit = 255;
inline constexpr std::uint64_t further_operands_limit = 16;
inline constexpr std::uint64_t repair_kinds_limit = 64;

}  // namespace cmt::format
