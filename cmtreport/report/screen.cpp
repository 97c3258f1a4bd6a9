// Wraps and numbers texts for a terminal. Widths are columns of the screen, not bytes: names may have any UTF-8.

#include "cmtreport/report/screen.h"

#include <algorithm>

#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {

std::string wrapped(const std::string& text, std::size_t indent, const std::string& before) {
  std::string lines = before;
  std::size_t column = text::utf8_width(before);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t word = text::utf8_width(text.substr(at, end - at));
    const std::size_t blank = at == 0 ? 0 : 1;
    if (column != 0 && column + blank + word > screen_columns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      lines.append(blank, ' ');
      column += blank;
    }
    lines += text.substr(at, end - at);
    column += word;
    at = end + 1;
  }
  return lines + "\n";
}

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

namespace {

constexpr std::size_t most = 10;

/// `columns`: the most of a text. 0: none of it.
Numbered numbered_with(const std::vector<ListedFinding>& findings, std::size_t lines, std::size_t columns) {
  constexpr std::size_t indent = 4;
  Numbered shown;
  for (std::size_t used = 0; shown.count < std::min(most, findings.size()); ++shown.count) {
    const auto& [figure, headline, text] = findings[shown.count];
    std::string next = wrapped(figure.empty() ? headline : figure + "  " + headline, indent,
                               output::padded(std::to_string(shown.count + 1), 2) + ". ");
    if (columns != 0)
      next += wrapped(output::shortened(text, columns, output::Telling::begin), indent, std::string(indent, ' '));
    const bool is_last = shown.count + 1 == findings.size();
    used += line_count(next);
    if (used + (is_last ? 0 : 1) > lines) break;
    shown.text += next;
  }
  if (shown.count != findings.size())
    shown.text += "    " + output::with_commas(findings.size() - shown.count) + " more in --json\n";
  return shown;
}

}  // namespace

Numbered numbered(const std::vector<ListedFinding>& findings, std::size_t lines) {
  constexpr std::size_t whole = 1000, a_line = screen_columns - 4;
  for (const std::size_t columns : {whole, a_line}) {
    Numbered shown = numbered_with(findings, lines, columns);
    if (shown.count == std::min(most, findings.size())) return shown;
  }
  return numbered_with(findings, lines, 0);
}

}  // namespace cmt::report
