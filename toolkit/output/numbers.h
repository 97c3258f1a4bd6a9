/// Numbers as texts for people, in the same form in all tools.
#pragma once

#include <cstdint>
#include <string>

namespace cmt::output {

/// "1,234,567".
std::string with_commas(std::uint64_t number);

/// "1 page", "2,048 pages", "3 processes".
std::string counted(std::uint64_t number, const std::string& noun);

/// An address as traces and smaps write it: "7ffd30a51000".
std::string hex(std::uint64_t address);

/// A number with `decimals` digits after the point: fixed(2.345, 1) is "2.3".
std::string fixed(double number, int decimals);

/// A part as a share of the whole: "12.3 %". "-" if the whole is 0.
std::string percent_text(std::uint64_t part, std::uint64_t whole);

/// From the least to the greatest number of a class: "8-9"; "7" where they are the same.
std::string range_text(std::uint64_t low, std::uint64_t high);

/// Bytes with three digits or more and a unit of 1,024: "812 B", "12.4 KiB", "3.05 GiB".
std::string bytes_text(std::uint64_t bytes);

/// A span of time with three digits or more: "812 ns", "12.4 us", "3.05 s".
std::string time_text(double nanoseconds);

/// A time on a clock, in seconds with three digits after the point: "3.142 s".
std::string seconds_text(std::int64_t nanoseconds);

/// Blanks and the text, as wide as a column.
std::string padded(const std::string& text, std::size_t width);

}  // namespace cmt::output
