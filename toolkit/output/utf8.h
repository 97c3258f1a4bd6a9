#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cmt::output {

/// U+FFFD, in place of bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Length of the well-formed UTF-8 sequence that `text` begins with, or 0.
std::size_t utf8_length(std::string_view text);

/// `text`, with replacement characters for bytes that are not UTF-8.
std::string to_utf8(std::string_view text);

/// The same for a line on a terminal: control characters, which a terminal would obey, become blanks.
std::string to_line(std::string_view text);

/// Whether a byte of UTF-8 is the first of its code point.
inline bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// The number of code points in a text; each counts as one column of a terminal.
std::size_t utf8_width(std::string_view text);

}  // namespace cmt::output
