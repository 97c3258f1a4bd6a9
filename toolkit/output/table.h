#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cmt::output {

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

  /// The titles and all rows. No line ends with blanks.
  std::string text() const;

 private:
  std::vector<std::size_t> widths() const;
  void append_row(std::string& out, const std::vector<std::string>& cells,
                  const std::vector<std::size_t>& widths) const;

  std::vector<std::string> titles_;
  std::set<std::size_t> texts_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cmt::output
