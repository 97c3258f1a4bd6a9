// Lays out tables by the width of code points.

#include "toolkit/output/table.h"

#include <algorithm>
#include <cassert>

#include "libcmt/text/utf8.h"

namespace cmt::output {

std::string shortened(std::string_view text, std::size_t width, Telling telling) {
  constexpr std::string_view gap = "...";
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text::begins_character(text[i])) begins.push_back(i);
  }
  if (begins.size() <= width) return std::string(text);
  if (width <= gap.size()) return std::string(gap.substr(0, width));
  const std::size_t kept = width - gap.size(), front = telling == Telling::begin ? kept : kept / 3;
  if (front == kept) return std::string(text.substr(0, begins[front])).append(gap);
  return std::string(text.substr(0, begins[front]))
      .append(gap)
      .append(text.substr(begins[begins.size() - (kept - front)]));
}

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

/// Makes the widths of columns that are left out 0.
void Table::fit_to(std::vector<std::size_t>& widths, std::size_t width) const {
  assert(!widths.empty());
  const std::size_t last = widths.size() - 1;
  const auto before_last = [&] {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < last; ++i) sum += widths[i] == 0 ? 0 : widths[i] + 2;
    return sum;
  };
  const std::size_t wanted = std::min(widths[last], least_width);
  for (std::size_t i = last; --i > 1 && before_last() + wanted > width;) widths[i] = 0;
  widths[last] = std::min(widths[last], std::max(width, before_last() + wanted) - before_last());
}

void Table::append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                       Telling telling) const {
  assert(cells.size() == widths.size());
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = shortened(cells[i], widths[i], telling);
    assert(text::utf8_width(cell) <= widths[i]);
    const std::string padding(widths[i] - text::utf8_width(cell), ' ');
    if (i != 0) line += "  ";
    line += texts_.contains(i) ? cell + padding : padding + cell;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

std::string Table::text(std::size_t width, Telling telling) const {
  std::vector<std::size_t> all_widths = widths();
  if (width != 0) fit_to(all_widths, width);
  std::string out;
  append_row(out, titles_, all_widths, telling);
  for (const auto& row : rows_) append_row(out, row, all_widths, telling);
  return out;
}

}  // namespace cmt::output
