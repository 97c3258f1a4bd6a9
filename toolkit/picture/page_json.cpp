// A picture as JSON, for page.js, which draws it:
//
//   panels[]   title; x and y: title, unit, log, range, ticks[]: [at, label], breaks[]
//              series[]: name, form, x[], y[]
//              heat (or null): title, unit, log, colours: range, x_edges[], y_edges[], apart_title, apart[],
//                cells[]: [row, first column, cells…], runs of cells that are not 0
//
// What a screen cannot show is left out as in an SVG, but from eight times as many columns, for whoever zooms.

#include <cmath>

#include "toolkit/output/json.h"
#include "toolkit/picture/downsample.h"
#include "toolkit/picture/page.h"
#include "toolkit/picture/ranges.h"

namespace cmt::output {
namespace {

constexpr std::size_t columns_max = 6400;
constexpr std::size_t heat_edges_max = 1024;

std::string_view name(Unit unit) {
  switch (unit) {
    case Unit::count:
      return "count";
    case Unit::bytes:
      return "bytes";
    case Unit::ns:
      return "ns";
    case Unit::share:
      return "share";
  }
  return "";
}

std::string_view name(Series::Form form) {
  switch (form) {
    case Series::Form::line:
      return "line";
    case Series::Form::step:
      return "step";
    case Series::Form::band:
      return "band";
  }
  return "";
}

void write_numbers(JsonWriter& json, std::string_view key, const std::vector<double>& numbers) {
  json.begin_array(key);
  for (const double number : numbers) json.value(number);
  json.end_array();
}

void write_axis(JsonWriter& json, std::string_view key, const Axis& axis, const Range& range) {
  json.begin_object(key);
  json.field("title", axis.title);
  json.field("unit", name(axis.unit));
  json.field("log", axis.log);
  write_numbers(json, "range", {range.low, range.high});
  json.begin_array("ticks");
  for (const Tick& tick : axis.ticks) {
    json.begin_array();
    json.value(tick.at);
    json.value(tick.label);
    json.end_array();
  }
  json.end_array();
  write_numbers(json, "breaks", axis.breaks);
  json.end_object();
}

void write_series(JsonWriter& json, const Panel& panel, const Range& range) {
  std::vector<Series> bands;
  for (const Series& series : panel.series) {
    if (series.form == Series::Form::band) bands.push_back(series);
  }
  bands = downsample_bands(bands, range.low, range.high, columns_max);
  std::size_t band = 0;
  json.begin_array("series");
  for (const Series& series : panel.series) {
    const bool lies = series.form == Series::Form::band;
    const Series seen = lies ? bands[band++] : downsample(series, range.low, range.high, columns_max);
    json.begin_object();
    json.field("name", seen.name);
    json.field("form", name(seen.form));
    write_numbers(json, "x", seen.x);
    write_numbers(json, "y", seen.y);
    json.end_object();
  }
  json.end_array();
}

/// With four digits, which no colour can tell apart.
double rounded(double number, Unit unit) { return unit == Unit::share ? std::round(number * 1e4) / 1e4 : number; }

void write_row(JsonWriter& json, const HeatMap& heat, std::size_t row) {
  for (std::size_t x = 0; x < heat.columns(); ++x) {
    if (!(heat.at(x, row) > 0)) continue;
    json.begin_array();
    json.value(static_cast<std::uint64_t>(row));
    json.value(static_cast<std::uint64_t>(x));
    for (; x < heat.columns() && heat.at(x, row) > 0; ++x) json.value(rounded(heat.at(x, row), heat.unit));
    json.end_array();
  }
}

void write_heat(JsonWriter& json, const HeatMap& whole) {
  const HeatMap heat = downsample(whole, heat_edges_max);
  const Range colours = colour_range(heat);
  json.begin_object("heat");
  json.field("title", heat.title);
  json.field("unit", name(heat.unit));
  json.field("log", heat.log);
  write_numbers(json, "colours", {colours.low, colours.high});
  write_numbers(json, "x_edges", heat.x_edges);
  write_numbers(json, "y_edges", heat.y_edges);
  json.field("apart_title", heat.apart_title);
  write_numbers(json, "apart", heat.apart);
  json.begin_array("cells");
  for (std::size_t row = 0; row < heat.rows(); ++row) write_row(json, heat, row);
  json.end_array();
  json.end_object();
}

}  // namespace

std::string page_json(const Picture& picture) {
  JsonWriter json;
  json.begin_object();
  json.begin_array("panels");
  for (const Panel& panel : picture.panels) {
    const Range range = x_range(picture, panel);
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
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::output
