/// Fits text into the 80 columns and 24 lines of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cmt::report {

/// The 80 columns of a terminal, and its 24 lines less one for the prompt.
inline constexpr std::size_t screen_columns = 80, screen_lines = 23;

/// Returns `before` and `text` in lines of the screen's width. Each line after the first is indented by `indent`.
std::string wrapped(const std::string& text, std::size_t indent, const std::string& before = {});

std::size_t line_count(const std::string& text);

/// A numbered list.
struct Numbered {
  std::string text;
  std::size_t count = 0;  ///< how many texts it contains
};

/// Returns the first ten texts, numbered. If there is no room for all, each is cut to two lines, and the list has as
/// many as there is room for. The last line states how many more there are.
Numbered numbered(const std::vector<std::string>& texts, std::size_t lines);

}  // namespace cmt::report
