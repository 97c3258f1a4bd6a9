// A picture as an HTML page. Its scripts draw the panels with uPlot from this JSON:
//
//   panels[]    title; x and y: title, unit, log, range, ticks[]: [at, label], breaks[]
//
//               series[]: name, form, look (a colour; absent: by its place), x[], y[]
//                 of the form "point" also within[]: [x low, x high, y low, y high]
//
//               heat (or null): title, unit, log, colours: range, x_edges[], y_edges[], marginals, numbers,
//               apart_title, apart[],
//
//                 cells[]: [row, first column, cells…], runs of cells that are not 0,
//                 row_names[], column_names[], row_details[]: in details[], of a click on the row
//
//   details[]   panels that are shown one at a time
//
// Points that a screen cannot show are left out as in an SVG, but with eight times as many columns, for zooming.

#include <algorithm>
#include <array>
#include <cmath>

#include "page_parts.h"  // made by CMake: the parts
#include "toolkit/output/fields.h"
#include "toolkit/picture/axis.h"
#include "toolkit/picture/html_page.h"
#include "toolkit/picture/svg_parts.h"

namespace cmt::picture {

template <class Visitor, output::DescribedAs<Tick> T>
void describe(Visitor& field, T& tick) {
  field("at", tick.at, "");
  field("label", tick.label, "");
}

template <class Visitor, output::DescribedAs<Series::Within> W>
void describe(Visitor& field, W& within) {
  field("x_low", within.x_low, "");
  field("x_high", within.x_high, "");
  field("y_low", within.y_low, "");
  field("y_high", within.y_high, "");
}

namespace {

constexpr std::size_t columns_max = 6400;
constexpr std::size_t heat_edges_max = 1024;

constexpr std::array<std::string_view, 5> form_names{"line", "step", "point", "band",
                                                     "step_band"};  ///< by Series::Form

void write_axis(output::JsonWriter& json, std::string_view key, const Axis& axis, const Range& range) {
  json.begin_object(key);
  json.field("title", axis.title);
  json.field("unit", unit_name(axis.unit));
  json.field("log", axis.log);
  write_field(json, "range", std::vector{range.low, range.high});
  write_field(json, "ticks", output::as_tuples(axis.ticks));
  write_field(json, "breaks", axis.breaks);
  json.end_object();
}

void write_series(output::JsonWriter& json, const Panel& panel, const Range& range) {
  json.begin_array("series");
  for (const Series& seen : downsample(panel.series, range.low, range.high, columns_max)) {
    json.begin_object();
    json.field("name", seen.name);
    json.field("form", form_names[static_cast<std::size_t>(seen.form)]);
    if (seen.look) write_field(json, "look", std::uint64_t{*seen.look});
    write_field(json, "x", seen.x);
    write_field(json, "y", seen.y);
    if (is_points(seen)) write_field(json, "within", output::as_tuples(seen.within));
    json.end_object();
  }
  json.end_array();
}

/// Shares with four digits: finer differences have no colour of their own.
double rounded(double number, Unit unit) { return unit == Unit::share ? std::round(number * 1e4) / 1e4 : number; }

void write_row(output::JsonWriter& json, const HeatMap& heat, std::size_t row) {
  for (std::size_t x = 0; x < heat.columns(); ++x) {
    if (!(heat.at(x, row) > 0)) continue;
    json.begin_array();
    json.value(static_cast<std::uint64_t>(row));
    json.value(static_cast<std::uint64_t>(x));
    for (; x < heat.columns() && heat.at(x, row) > 0; ++x) json.value(rounded(heat.at(x, row), heat.unit));
    json.end_array();
  }
}

void write_heat(output::JsonWriter& json, const HeatMap& whole) {
  const HeatMap heat = downsample(whole, heat_edges_max);
  const Range colours = colour_range(heat);
  json.begin_object("heat");
  json.field("title", heat.title);
  json.field("unit", unit_name(heat.unit));
  json.field("log", heat.log);
  write_field(json, "colours", std::vector{colours.low, colours.high});
  write_field(json, "x_edges", heat.x_edges);
  write_field(json, "y_edges", heat.y_edges);
  json.field("marginals", heat.marginals);
  json.field("numbers", heat.numbers);
  json.field("apart_title", heat.apart_title);
  write_field(json, "apart", heat.apart);
  write_field(json, "row_names", heat.row_names);
  write_field(json, "column_names", heat.column_names);
  json.begin_array("row_details");
  for (const std::size_t panel : heat.row_details) json.value(static_cast<std::uint64_t>(panel));
  json.end_array();
  json.begin_array("cells");
  for (std::size_t row = 0; row < heat.rows(); ++row) write_row(json, heat, row);
  json.end_array();
  json.end_object();
}

void write_panel(output::JsonWriter& json, const Panel& panel, const Range& range) {
  json.begin_object();
  json.field("title", panel.title);
  write_axis(json, "x", panel.x, range);
  write_axis(json, "y", panel.y, y_range(panel));
  write_series(json, panel, range);
  if (panel.heat)
    write_heat(json, *panel.heat);
  else
    json.field("heat", std::nullopt);
  json.end_object();
}

/// The picture as JSON, for panels.js, which draws it.
std::string page_json(const Picture& picture) {
  output::JsonWriter json;
  json.begin_object();
  json.begin_array("panels");
  for (const Panel& panel : picture.panels) write_panel(json, panel, x_range(picture, panel));
  json.end_array();
  json.begin_array("details");
  for (const Panel& panel : picture.details)
    write_panel(json, panel, x_range({.title = {}, .subtitle = {}, .panels = {panel}}, panel));
  json.end_array();
  json.end_object();
  return json.take();
}

std::string head(const Picture& picture) {
  std::vector<PagePart> scripts;
  if (page_zooms()) scripts = {uplot_script, numbers_script, panels_script, page_script};
  return page_head(picture.title, {page_style, svg_style, uplot_style}, scripts) + element("style", page_style.text);
}

std::string table_element(std::string_view table) {
  std::string lines;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    lines += SvgText::escape(line) + '\n';
  }
  return lines.empty() ? lines : element("pre", lines);
}

std::string row_of(const std::vector<std::string>& cells, std::string_view tag) {
  std::string row;
  for (const std::string& cell : cells) row += element(tag, SvgText::escape(cell));
  return element("tr", row);
}

std::string table_elements(const std::vector<NumberTable>& tables) {
  std::string text;
  for (const NumberTable& table : tables) {
    std::string rows;
    for (const std::vector<std::string>& row : table.rows) rows += row_of(row, "td");
    text += element("table", element("thead", row_of(table.titles, "th")) + element("tbody", rows));
  }
  return text;
}

/// The body of a page that zooms, drawn by the scripts.
std::string zooming_body(const Picture& picture) {
  return element("style", svg_style.text) + element("style", uplot_style.text) + "</head>\n<body>\n" +
         element("h1", SvgText::escape(picture.title)) + element("p", SvgText::escape(picture.subtitle)) +
         "<p class=\"hint\">Drag to zoom, double-click to see all again.</p>\n<main id=\"panels\"></main>\n" +
         table_elements(picture.tables) + table_element(picture.table) + data_element("tick_rules", tick_rules_json()) +
         data_element("picture", page_json(picture)) + licence_comment("uPlot", uplot_licence) +
         element("script", uplot_script.text) + element("script", numbers_script.text) +
         element("script", panels_script.text) + element("script", page_script.text);
}

std::string still_body(const Picture& picture) {
  return "</head>\n<body>\n" + to_svg(picture) + table_elements(picture.tables) +
         "<p class=\"hint\">This page does not zoom: it was made without uPlot.</p>\n";
}

}  // namespace

bool page_zooms() { return !uplot_script.text.empty(); }

std::string to_html(const Picture& picture, std::string_view numbers) {
  return head(picture) + (page_zooms() ? zooming_body(picture) : still_body(picture)) +
         data_element("numbers", numbers) + "</body>\n</html>\n";
}

}  // namespace cmt::picture
