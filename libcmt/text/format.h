/// Writes the lines of a text trace (format-spec/text.md), for TextSink and for tools that print single events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt::text {

/// The most bytes that put_line() writes.
inline constexpr std::size_t line_room = 512;

/// Writes the canonical line of an event whose kind has no label, and returns its end. Needs line_room bytes at `at`.
char* put_line(char* at, const Event& event);

void append_number(std::string& out, std::uint64_t number, int base = 10);

/// Appends `text` in quotes, with escapes for control characters, quotes and backslashes.
void append_string(std::string& out, std::string_view text);

/// Appends the value of a `key=value`: without quotes if possible, else as a string.
void append_value(std::string& out, std::string_view value);

/// Appends the header's lines, or nothing if there is no metadata (the seed's form).
void append_header(std::string& out, const Header& header);

/// The header's `start` for seconds since 1970: "2026-11-22T00:53:10Z". Empty if the C library cannot express the year.
std::string start_text(std::uint64_t unix_seconds);

/// Appends the lines that end a text with a header.
void append_end(std::string& out, const Totals& totals);

/// Reads the line of a stretch of the recording. Returns nothing for any other line, which is a comment then.
std::optional<RunStretch> take_stretch(std::string_view line);

}  // namespace cmt::text
