#include "toolkit/output/table.h"

#include <algorithm>
#include <cassert>

#include "libcmt/text/utf8.h"

namespace cmt::output {

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == titles_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < titles_.size(); ++i) {
    std::size_t widest = text::utf8_width(titles_[i]);
    for (const auto& row : rows_) widest = std::max(widest, text::utf8_width(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

void Table::append_row(std::string& out, const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - text::utf8_width(cells[i]), ' ');
    if (i != 0) line += "  ";
    line += texts_.contains(i) ? cells[i] + padding : padding + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

std::string Table::text() const {
  const std::vector<std::size_t> all_widths = widths();
  std::string out;
  append_row(out, titles_, all_widths);
  for (const auto& row : rows_) append_row(out, row, all_widths);
  return out;
}

}  // namespace cmt::output
