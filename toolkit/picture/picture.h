/// Pictures of all tools: a tool fills in plain data, and this folder draws SVG, HTML, PNG or PDF from them.
#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/files/output_file.h"

/// The content of a picture as plain data. A tool fills it in; to_svg() and to_html() draw it.
///
///     Panel panel{.title = "memory", .x = {"time", Unit::ns}, .y = {"bytes", Unit::bytes}};
///     panel.series.push_back({"resident", times, bytes, Series::Form::line});
///     std::string svg = to_svg({"a program", "1,234 samples", {panel}});
///
/// Anything may be empty, a single point, or infinite: numbers without a position are left out, and an empty panel says
/// "nothing to show".
namespace cmt::picture {

/// The unit of numbers. It decides which are round, and how they are written.
enum class Unit {
  count,  ///< 1-2-5; 1,500 or 1.5 M
  bytes,  ///< powers of two; KiB, MiB
  ns,     ///< 1-2-5; us, ms, s
  share,  ///< from 0 to 1; per cent
  one_in  ///< the rest of one in so many: 1,000 is 99.9 %
};

/// A mark on an axis.
struct Tick {
  double at = 0;
  std::string label;
  bool operator==(const Tick&) const = default;
};

struct Axis {
  std::string title;
  Unit unit = Unit::count;
  bool log = false;              ///< logarithmic from 1 on; from 0 to 1 there is one more doubling's room, linear
  std::vector<Tick> ticks{};     ///< empty: chosen by the unit; those that would overlap are left out
  std::vector<double> breaks{};  ///< positions on a y axis where a range was left out
};

/// Points by rising x. A point that is not finite is left out.
struct Series {
  enum class Form {
    line,
    step,      ///< keeps its height up to the next point
    point,     ///< a mark for each point, with the series' name next to it
    band,      ///< the bands of a panel lie on each other in their order; all have the same x
    step_band  ///< a band that keeps its height up to the next point
  };

  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  Form form = Form::line;

  /// Where a point of the form `point` lies for certain: drawn as a cross.
  struct Within {
    double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  };
  std::vector<Within> within{};    ///< of each point; empty: not known
  std::optional<unsigned> look{};  ///< its colour, from 0 to 7; else the one of its place in the panel

  /// Adds a point of numbers of any type.
  template <class X, class Y>
  void add(X at, Y number) {
    x.push_back(static_cast<double>(at));
    y.push_back(static_cast<double>(number));
  }
};

/// Cells in columns and rows between rising edges. A cell of 0 is not drawn.
struct HeatMap {
  std::string title;  ///< of the colours
  Unit unit = Unit::count;
  bool log = false;
  std::vector<double> x_edges{};  ///< columns + 1
  std::vector<double> y_edges{};  ///< rows + 1
  std::vector<double> cells{};    ///< row by row, the lowest first
  bool marginals = false;         ///< the sums of columns above the map, those of rows to its right
  std::string apart_title{};      ///< the title of a row above the map, apart from its rows
  std::vector<double> apart{};    ///< its cells; empty: none

  bool numbers = false;  ///< cells that are large enough show their numbers; of shares the least is "best"

  std::vector<std::string> row_names{};     ///< in the place of numbers: of each row
  std::vector<std::string> column_names{};  ///< and of each column
  std::vector<std::size_t> row_details{};   ///< of each row the panel of Picture::details that a click opens

  std::size_t columns() const { return x_edges.empty() ? 0 : x_edges.size() - 1; }
  std::size_t rows() const { return y_edges.empty() ? 0 : y_edges.size() - 1; }
  double at(std::size_t column, std::size_t row) const {
    assert(column < columns() && row * columns() + column < cells.size());
    return cells[row * columns() + column];
  }
};

/// Two axes with series or a map.
struct Panel {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series{};
  std::optional<HeatMap> heat{};
};

/// Rows of cells below titles. The first column is text; the others are numbers.
struct NumberTable {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
};

/// Panels below each other. Where all x axes have one title and unit, they have one range.
struct Picture {
  std::string title;
  std::string subtitle;
  std::vector<Panel> panels;
  std::vector<Panel> details{};       ///< shown by a page alone, one at a time, when they are asked for
  std::vector<NumberTable> tables{};  ///< shown by a page alone, below the panels
  std::string table{};                ///< lines of text in letters of one width, below all
};

/// A picture as SVG, of a fixed width and as high as its panels need. The same picture gives the same bytes. Colours
/// suit white, and black where the viewer prefers dark. Some 10 kB, and up to some 200 kB for a map, however many
/// numbers it shows.
std::string to_svg(const Picture& picture);

/// A picture as one HTML page that opens without a network. It zooms by dragging, shows the numbers under the pointer,
/// and contains `numbers`, the tool's JSON, in the element of that name. By its content policy the browser runs and
/// styles only what is in the page. Built without uPlot, the page is the SVG alone.
std::string to_html(const Picture& picture, std::string_view numbers);

/// Whether pages zoom: whether this was built with uPlot.
bool page_zooms();

/// The file that a picture is written to. Its ending chooses the form: .svg, .html, .png or .pdf. rsvg-convert makes
/// the last two. The constructor opens the file, so that an error shows before the work begins. The picture gets the
/// name when it is whole, as files::OutputFile describes.
class PictureFile {
 public:
  enum class Form { svg, html, png, pdf };

  /// By a path's ending.
  static std::optional<Form> form_of(std::string_view path);

  /// The fault of a path as the name of a picture. Empty if the path is good.
  static std::string fault_of(const std::string& path);

  /// `path` must have one of the endings. Throws std::system_error, and std::runtime_error if rsvg-convert is needed
  /// and missing.
  explicit PictureFile(const std::string& path);

  /// `numbers` is the JSON that a page contains. Throws as the constructor does.
  void write(const Picture& picture, std::string_view numbers);

  /// A note for the user, that a page does not zoom; empty otherwise.
  std::string_view remark() const;

 private:
  std::string convert(std::string_view svg) const;

  std::string path_;
  Form form_;
  std::optional<files::OutputFile> file_;
};

}  // namespace cmt::picture
