// Lays out tables by the width of code points.

#include "toolkit/output/table.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "libcmt/text/utf8.h"
#include "toolkit/output/style.h"

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

/// Whether the column is one of numbers, and all are 0 or not known.
bool Table::is_zero(std::size_t column) const {
  return !texts_.contains(column) && !rows_.empty() &&
         std::all_of(rows_.begin(), rows_.end(), [&](const std::vector<std::string>& row) {
           return row[column].find_first_of("123456789") == std::string::npos;
         });
}

/// Makes the widths of columns that are left out 0.
void Table::fit_to(std::vector<std::size_t>& widths, std::size_t width) const {
  assert(!widths.empty());
  std::optional<std::size_t> flexible;
  for (const std::size_t column : texts_) {
    if (!flexible || widths[column] > widths[*flexible]) flexible = column;
  }
  const std::size_t least = flexible ? std::min(widths[*flexible], least_width) : 0;
  const auto rest = [&] {  // the width of all others, with the blanks between
    std::size_t sum = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) sum += widths[i] == 0 || i == flexible ? 0 : widths[i] + 2;
    return flexible || sum < 2 ? sum : sum - 2;
  };
  std::vector<std::size_t> order;
  for (const std::string& title : first_out_) {
    const auto found = std::find(titles_.begin(), titles_.end(), title);
    if (found != titles_.end()) order.push_back(static_cast<std::size_t>(found - titles_.begin()));
  }
  for (std::size_t i = widths.size(); i-- > 2;) order.push_back(i);
  for (const std::size_t column : order) {
    if (rest() + least <= width) break;
    if (column != flexible) widths[column] = 0;
  }
  if (flexible) widths[*flexible] = std::min(widths[*flexible], std::max(width, rest() + least) - rest());
}

void Table::append_row(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                       Telling telling) const {
  assert(cells.size() == widths.size());
  std::string line;
  bool is_first = true;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string cell = shortened(cells[i], widths[i], telling);
    assert(text::utf8_width(cell) <= widths[i]);
    const std::string padding(widths[i] - text::utf8_width(cell), ' ');
    if (!is_first) line += "  ";
    is_first = false;
    line += texts_.contains(i) ? cell + padding : padding + cell;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

std::string Table::text(std::size_t width, Telling telling) const {
  std::vector<std::size_t> all_widths = widths();
  for (std::size_t i = 0; leaves_out_zeros_ && i < all_widths.size(); ++i) {
    if (is_zero(i)) all_widths[i] = 0;
  }
  if (width != 0) fit_to(all_widths, width);
  std::string titles, out;
  append_row(titles, titles_, all_widths, telling);
  titles.pop_back();
  out = bold(titles) + "\n";
  for (const auto& row : rows_) append_row(out, row, all_widths, telling);
  return out;
}

}  // namespace cmt::output
