#pragma once

#include <string>
#include <vector>

namespace cmt::output {

/// A table for people: columns aligned, two blanks between them, no frame.
///
///     Table table({{"allocator"}, {"time", Align::right}});
///     table.add({"libc", "12.1 ms"});
///     std::string text = table.text();
enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row, with a cell for each column (asserted). Cells are UTF-8; a code point counts as one column wide.
  void add(std::vector<std::string> cells);

  /// The titles and all rows. No line ends with blanks.
  std::string text() const;

 private:
  std::vector<std::size_t> widths() const;
  void append_row(std::string& out, const std::vector<std::string>& cells,
                  const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cmt::output
