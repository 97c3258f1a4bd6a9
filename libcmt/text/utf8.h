/// Makes text of unknown origin safe to print: valid UTF-8, without characters that a terminal obeys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cmt::text {

/// U+FFFD, which replaces bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// The length of the well-formed UTF-8 sequence at the begin of `text`, or 0.
std::size_t utf8_length(std::string_view text);

/// Whether a byte is a control character of ASCII: C0 and DEL.
inline bool is_control(char byte) { return static_cast<unsigned char>(byte) < ' ' || byte == '\x7f'; }

/// The length of the first character of `text` if a terminal obeys it instead of showing it, or 0. Terminals obey the
/// control characters of ASCII (C0 and DEL) and of Unicode (C1). They also obey characters that turn the direction of
/// writing, which can make a name look like another one.
std::size_t control_length(std::string_view text);

/// Whether a terminal shows all of the text: it is UTF-8, and its only characters that a terminal obeys are tabs.
bool is_plain(std::string_view text);

/// `text` with replacement characters for bytes that are not UTF-8.
std::string to_utf8(std::string_view text);

/// The same, and with blanks for characters that a terminal obeys. Ends of lines (LF, CR LF) and tabs stay.
std::string to_lines(std::string_view text);

/// The same for one line: ends of lines and tabs become blanks too.
std::string to_line(std::string_view text);

/// Whether a byte of UTF-8 is the first of its code point.
inline bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// The number of code points in a text; each counts as one column of a terminal.
std::size_t utf8_width(std::string_view text);

}  // namespace cmt::text
