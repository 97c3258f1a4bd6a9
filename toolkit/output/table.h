#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cmt::output {

/// The part of a long text that tells most: of a path the end and some of the beginning, of a command the beginning.
enum class Telling { both_ends, begin };

/// A text of at most `width` columns, with "..." in the place of what is left out.
std::string shortened(std::string_view text, std::size_t width, Telling telling = Telling::both_ends);

/// A table for people: columns aligned, two blanks between them, no frame.
///
///     Table table({"allocator", "time", "peak resident"});
///     table.add({"libc", "12.1 ms", "3.05 MiB"});
///     std::string text = table.text();
class Table {
 public:
  /// Columns of texts are aligned to the left: those with the indexes `texts`. All others are aligned to the right.
  explicit Table(std::vector<std::string> titles, std::set<std::size_t> texts = {0})
      : titles_(std::move(titles)), texts_(std::move(texts)) {}

  /// Adds a row, with a cell for each column (asserted). Cells are UTF-8; a code point counts as one column wide.
  void add(std::vector<std::string> cells);

  /// The titles and all rows. No line ends with blanks. With a `width`, the last column, of texts, is shortened to it;
  /// where less than `least_width` would be left of it, the columns before it are left out, but for the first two.
  std::string text(std::size_t width = 0, Telling telling = Telling::both_ends) const;

  static constexpr std::size_t least_width = 24;

 private:
  std::vector<std::size_t> widths() const;
  void append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                  Telling telling) const;
  void fit_to(std::vector<std::size_t>& widths, std::size_t width) const;

  std::vector<std::string> titles_;
  std::set<std::size_t> texts_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cmt::output
