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

/// The room for a text that is not written to a terminal.
inline constexpr std::size_t any_lines = ~std::size_t{0};

/// A finding in a list: a line with its most important number, and all of it.
struct ListedFinding {
  std::string figure;
  std::string headline;
  std::string text;
};

/// A numbered list.
struct Numbered {
  std::string text;
  std::size_t count = 0;  ///< how many findings it contains
};

/// Returns the first ten findings, numbered. If there is no room for all, their texts are cut to a line. If that is not
/// enough, the texts are left out, and the list ends where the room does. The last line states how many more there are.
Numbered numbered(const std::vector<ListedFinding>& findings, std::size_t lines);

}  // namespace cmt::report
