#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cmt::report {

/// A terminal's 80 columns, and its 24 lines without that of the prompt.
inline constexpr std::size_t screen_columns = 80, screen_lines = 23;

/// A text, with another one before it, in lines of the screen's width, those after the first further in.
std::string wrapped(const std::string& text, std::size_t indent, const std::string& before = {});

std::size_t line_count(const std::string& text);

/// Texts with their numbers before them.
struct Numbered {
  std::string text;
  std::size_t count = 0;  ///< how many are told
};

/// The first ten, cut to two lines each where there is no room for all, or as many as there is room for; then how many
/// more there are.
Numbered numbered(const std::vector<std::string>& texts, std::size_t lines);

}  // namespace cmt::report
