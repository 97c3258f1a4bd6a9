// A map as SVG: one path for each colour, of rectangles at whole pixels. Neighbours of one colour are one rectangle, so
// that there are no seams between cells and a map takes some 100 kB. If cells share a pixel, the greatest is drawn.

#include <algorithm>
#include <array>
#include <cmath>

#include "toolkit/picture/svg_parts.h"

namespace cmt::picture {
namespace {

using Anchor = SvgText::Anchor;
constexpr int heat_levels = 12;  ///< colours of a map
constexpr double marginal_size = 54;
constexpr double marginal_gap = 5;
constexpr double apart_size = 12;
constexpr double apart_gap = 6;
constexpr double bar_room = 104;  // the colours, their labels and what is between

/// The indexes of edges that are at least `distance` pixels apart; the first and the last are among them.
template <class Pixel>
std::vector<std::size_t> visible_edges(const std::vector<double>& edges, Pixel pixel, double distance) {
  std::vector<std::size_t> visible{0};
  for (std::size_t i = 1; i + 1 < edges.size(); ++i) {
    if (std::abs(pixel(edges[i]) - pixel(edges[visible.back()])) >= distance) visible.push_back(i);
  }
  if (edges.size() > 1) visible.push_back(edges.size() - 1);
  return visible;
}

/// Cells of one colour beside each other, by their indexes among the visible edges.
struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;
  int level = 0;
  double top = 0;
  double bottom = 0;
};

/// The rectangles of each colour.
class CellPaths {
 public:
  /// The pixels at which columns begin and end.
  explicit CellPaths(std::vector<double> columns) : columns_(std::move(columns)) {}

  /// Adds a row above all rows so far. `levels` has the colour of each column, or -1. A run that is the same in the row
  /// below makes one rectangle with it.
  void add_row(const std::vector<int>& levels, double top, double bottom) {
    std::vector<Run> runs;
    for (std::size_t begin = 0; begin < levels.size();) {
      std::size_t end = begin + 1;
      while (end < levels.size() && levels[end] == levels[begin]) ++end;
      if (levels[begin] >= 0)
        runs.push_back(joined_with_below({begin, end, levels[begin], std::round(top), std::round(bottom)}));
      begin = end;
    }
    for (const Run& run : below_) append_rectangle(run);
    below_ = std::move(runs);
  }

  void draw(SvgText& svg) {
    add_row({}, 0, 0);
    for (int level = 0; level < heat_levels; ++level) {
      svg.path(steps_[static_cast<std::size_t>(level)], "h" + std::to_string(level));
    }
  }

 private:
  /// The run, joined with the equal one of the row below, which is removed.
  Run joined_with_below(Run run) {
    const auto below = std::lower_bound(below_.begin(), below_.end(), run.begin,
                                        [](const Run& other, std::size_t begin) { return other.begin < begin; });
    if (below == below_.end() || below->begin != run.begin || below->end != run.end) return run;
    if (below->level != run.level || below->top != run.bottom) return run;
    run.bottom = below->bottom;
    below->level = -1;
    return run;
  }

  void append_rectangle(const Run& run) {
    if (run.level < 0) return;
    const double x = columns_[run.begin];
    const double width = std::max(1.0, columns_[run.end] - x);
    steps_[static_cast<std::size_t>(run.level)] +=
        'M' + SvgText::number(x) + ' ' + SvgText::number(run.top) + 'h' + SvgText::number(width) + 'v' +
        SvgText::number(std::max(1.0, run.bottom - run.top)) + 'h' + SvgText::number(-width);
  }

  std::vector<double> columns_;
  std::vector<Run> below_;
  std::array<std::string, heat_levels> steps_;
};

std::vector<double> pixels(const HeatMap& heat, const Frame& frame, const std::vector<std::size_t>& columns) {
  std::vector<double> pixels;
  for (const std::size_t column : columns) pixels.push_back(std::round(frame.pixel_x(heat.x_edges[column])));
  return pixels;
}

/// The number of the colour for a cell, from 0 to heat_levels - 1; -1: it is not drawn.
int level_or_none(const HeatMap& heat, const Range& colours, double cell) {
  if (!(cell > 0)) return -1;
  const double share = position_between(cell, colours, heat.log);
  return std::clamp(static_cast<int>(share * heat_levels), 0, heat_levels - 1);
}

/// Draws the row above the map that is not one of its rows.
void draw_apart(SvgText& svg, const HeatMap& heat, const Frame& frame, const Range& colours) {
  const double bottom = frame.top - apart_gap;
  const auto columns = visible_edges(
      heat.x_edges, [](double) { return 0.0; }, 0);
  CellPaths cells(pixels(heat, frame, columns));
  std::vector<int> levels;
  for (const double cell : heat.apart) levels.push_back(level_or_none(heat, colours, cell));
  cells.add_row(levels, bottom - apart_size, bottom);
  cells.draw(svg);
  svg.words(frame.left - 7, bottom - 2, Anchor::end, "label", heat.apart_title);
}

void draw_cells(SvgText& svg, const HeatMap& heat, const Frame& frame, const Range& colours) {
  const auto columns = visible_edges(
      heat.x_edges, [&](double x) { return frame.pixel_x(x); }, 1.5);
  const auto rows = visible_edges(
      heat.y_edges, [&](double y) { return frame.pixel_y(y); }, 1);
  CellPaths cells(pixels(heat, frame, columns));
  for (std::size_t row = 0; row + 1 < rows.size(); ++row) {
    std::vector<int> levels(columns.size() - 1, -1);
    for (std::size_t column = 0; column < levels.size(); ++column) {
      double most = 0;
      for (std::size_t y = rows[row]; y < rows[row + 1]; ++y) {
        for (std::size_t x = columns[column]; x < columns[column + 1]; ++x) most = std::max(most, heat.at(x, y));
      }
      levels[column] = level_or_none(heat, colours, most);
    }
    cells.add_row(levels, frame.pixel_y(heat.y_edges[rows[row + 1]]), frame.pixel_y(heat.y_edges[rows[row]]));
  }
  cells.draw(svg);
}

/// The numbers of cells that are large enough for them.
void draw_numbers(SvgText& svg, const HeatMap& heat, const Frame& frame, const Range& colours) {
  constexpr double wide = 40, high = 14;
  for (std::size_t row = 0; row < heat.rows(); ++row) {
    const double top = frame.pixel_y(heat.y_edges[row + 1]), bottom = frame.pixel_y(heat.y_edges[row]);
    for (std::size_t column = 0; column < heat.columns() && bottom - top >= high; ++column) {
      const double left = frame.pixel_x(heat.x_edges[column]), right = frame.pixel_x(heat.x_edges[column + 1]);
      const double cell = heat.at(column, row);
      if (!(cell > 0) || right - left < wide) continue;
      const bool is_best = heat.unit == Unit::share && cell < 0.0005;
      svg.words((left + right) / 2, (top + bottom) / 2 + 4, Anchor::middle,
                level_or_none(heat, colours, cell) < heat_levels / 2 ? "n0" : "n1",
                is_best ? "best" : label_text(heat.unit, cell));
    }
  }
}

void draw_marginals(SvgText& svg, const HeatMap& heat, const Frame& frame) {
  std::vector<double> by_column(heat.columns());
  std::vector<double> by_row(heat.rows());
  for (std::size_t row = 0; row < heat.rows(); ++row) {
    for (std::size_t column = 0; column < heat.columns(); ++column) {
      by_column[column] += heat.at(column, row);
      by_row[row] += heat.at(column, row);
    }
  }
  for (std::size_t i = 0; i < heat.apart.size(); ++i) by_column[i] += heat.apart[i];
  const double bottom = frame.top - marginal_gap - (heat.apart.empty() ? 0 : apart_gap + apart_size);
  const double most = *std::max_element(by_column.begin(), by_column.end());
  const double most_beside = *std::max_element(by_row.begin(), by_row.end());
  for (std::size_t i = 0; i < by_column.size(); ++i) {
    const double height = most > 0 ? marginal_size * by_column[i] / most : 0;
    const double x = frame.pixel_x(heat.x_edges[i]);
    if (height > 0) svg.rect(x, bottom - height, frame.pixel_x(heat.x_edges[i + 1]) - x - 0.4, height, "bar");
  }
  for (std::size_t i = 0; i < by_row.size(); ++i) {
    const double width = most_beside > 0 ? marginal_size * by_row[i] / most_beside : 0;
    const double y = frame.pixel_y(heat.y_edges[i + 1]);
    if (width > 0) {
      svg.rect(frame.right() + marginal_gap, y, width, frame.pixel_y(heat.y_edges[i]) - y - 0.4, "bar");
    }
  }
  svg.words(frame.left - 7, bottom - marginal_size + 4, Anchor::end, "label", label_text(heat.unit, most));
  svg.line(frame.left - 4, bottom - marginal_size, frame.left, bottom - marginal_size, "axis");
  svg.words(frame.right() + marginal_gap + marginal_size, frame.bottom() + 17, Anchor::middle, "label",
            label_text(heat.unit, most_beside));
  svg.line(frame.right() + marginal_gap + marginal_size, frame.bottom(), frame.right() + marginal_gap + marginal_size,
           frame.bottom() + 4, "axis");
}

void draw_colours(SvgText& svg, const HeatMap& heat, const Frame& frame, const Range& colours) {
  const double left = frame.right() + 18 + (heat.marginals ? marginal_gap + marginal_size : 0);
  const double height = std::min(frame.height - 20, 200.0);
  const Frame bar{left, frame.top + 20, 14, height, {}, colours, false, heat.log};
  svg.words(left, frame.top + 8, Anchor::start, "label", heat.title);
  for (int level = 0; level < heat_levels; ++level) {
    const double step = height / heat_levels;
    svg.rect(left, bar.bottom() - (level + 1) * step, bar.width, step + 0.3, "h" + std::to_string(level));
  }
  for (const Tick& tick : choose_ticks(heat.unit, heat.log, colours.low, colours.high, 7)) {
    const double y = bar.pixel_y(tick.at);
    svg.line(bar.right(), y, bar.right() + 4, y, "axis");
    svg.words(bar.right() + 7, y + 4, Anchor::start, "label", tick.label);
  }
}

}  // namespace

double heat_room_above(const HeatMap& heat) {
  return (heat.marginals ? marginal_size + marginal_gap : 0) + (heat.apart.empty() ? 0 : apart_size + apart_gap);
}

double heat_room_right(const HeatMap& heat) { return bar_room + (heat.marginals ? marginal_size + marginal_gap : 0); }

void draw_heat(SvgText& svg, const HeatMap& heat, const Frame& frame) {
  if (heat.columns() == 0 || heat.rows() == 0) return;
  const Range colours = colour_range(heat);
  draw_cells(svg, heat, frame, colours);
  if (heat.numbers) draw_numbers(svg, heat, frame, colours);
  if (!heat.apart.empty()) draw_apart(svg, heat, frame, colours);
  if (heat.marginals) draw_marginals(svg, heat, frame);
  draw_colours(svg, heat, frame, colours);
}

}  // namespace cmt::picture
