/// Makes text of unknown origin safe to print: valid UTF-8, without characters that a terminal obeys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cmt::text {

/// U+FFFD, in place of bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Length of the well-formed UTF-8 sequence that `text` begins with, or 0.
std::size_t utf8_length(std::string_view text);

/// Length of the character that `text` begins with where a terminal obeys it instead of showing it, or 0: the control
/// characters of ASCII (C0 and DEL) and of Unicode (C1), and those that turn the direction of writing, with which a
/// name looks like another one.
std::size_t control_length(std::string_view text);

/// Whether a terminal shows all of the text: it is UTF-8, and nothing in it but tabs is obeyed.
bool is_plain(std::string_view text);

/// `text`, with replacement characters for bytes that are not UTF-8.
std::string to_utf8(std::string_view text);

/// The same, with blanks for characters that a terminal obeys; ends of lines (LF, CR LF) and tabs stay.
std::string to_lines(std::string_view text);

/// The same for one line: ends of lines and tabs become blanks too.
std::string to_line(std::string_view text);

/// Whether a byte of UTF-8 is the first of its code point.
inline bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// The number of code points in a text; each counts as one column of a terminal.
std::size_t utf8_width(std::string_view text);

}  // namespace cmt::text
