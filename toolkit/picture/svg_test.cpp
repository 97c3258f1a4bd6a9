// Checks that every picture is whole XML without NaN, stays small, and escapes names.

#include "toolkit/picture/picture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "toolkit/picture/axis.h"

using namespace cmt::picture;

namespace {

Picture of_series(std::vector<double> x, std::vector<double> y, Series::Form form) {
  Picture picture{"a program", "some events", {}};
  picture.panels.push_back({"memory", {"time", Unit::ns}, {"bytes", Unit::bytes}});
  picture.panels.back().series = {{"live", x, y, form}, {"free", x, y, form}};
  return picture;
}

Picture of_map(std::size_t columns, std::size_t rows, double cell) {
  HeatMap heat{.title = "blocks", .log = true, .marginals = true, .apart_title = "at end"};
  for (std::size_t i = 0; i <= columns; ++i) heat.x_edges.push_back(static_cast<double>(i));
  for (std::size_t i = 0; i <= rows; ++i) heat.y_edges.push_back(static_cast<double>(i));
  for (std::size_t i = 0; i < columns * rows; ++i) heat.cells.push_back(i % 3 == 0 ? cell : 0);
  heat.apart.assign(columns, 1);
  Picture picture{"a program", "", {}};
  picture.panels.push_back({"map", {"size", Unit::bytes, true}, {"lifetime", Unit::count, true}, {}, std::move(heat)});
  return picture;
}

/// Checks that an SVG is whole, and contains no NaN or infinity.
void check_sound(const std::string& svg) {
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  for (const char* const word : {"nan", "inf", "e+"}) CHECK(svg.find(word) == std::string::npos);
}

}  // namespace

TEST_CASE("svg: pictures of nothing, of one point and of numbers beyond all bounds are drawn") {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto form : {Series::Form::line, Series::Form::step, Series::Form::band, Series::Form::step_band}) {
    CHECK(to_svg(of_series({}, {}, form)).find("nothing to show") != std::string::npos);
    check_sound(to_svg(of_series({}, {}, form)));
    check_sound(to_svg(of_series({5}, {7}, form)));
    check_sound(to_svg(of_series({0}, {0}, form)));
    check_sound(to_svg(of_series({0, 1, 2}, {0, 0x1p64, 1}, form)));
    check_sound(to_svg(of_series({0, infinite, 2}, {infinite, std::nan(""), -infinite}, form)));
  }
  for (const double cell : {0.0, 1.0, 0x1p64}) {
    check_sound(to_svg(of_map(1, 1, cell)));
    check_sound(to_svg(of_map(3, 5, cell)));
  }
  check_sound(to_svg(of_map(0, 0, 1)));
  check_sound(to_svg({"", "", {}}));
}

TEST_CASE("svg: the same picture gives the same bytes") {
  const Picture picture = of_map(20, 20, 5);
  CHECK(to_svg(picture) == to_svg(picture));
}

TEST_CASE("svg: a picture's size does not depend on how much it shows") {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 500'000; ++i) {
    x.push_back(i);
    y.push_back(i % 1009 * 7 % 1000);
  }
  CHECK(to_svg(of_series(x, y, Series::Form::line)).size() < 150'000);
  CHECK(to_svg(of_series(x, y, Series::Form::band)).size() < 200'000);
  CHECK(to_svg(of_map(2000, 2000, 1)).size() < 4'000'000);
}

TEST_CASE("svg: names are text and no markup") {
  Picture picture = of_series({0, 1}, {1, 2}, Series::Form::line);
  picture.title = "<script>&\"\x01";
  const std::string svg = to_svg(picture);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("&lt;script&gt;&amp;&quot;\xef\xbf\xbd") != std::string::npos);
}

TEST_CASE("svg: labels of an axis do not overlap, however close their ticks") {
  Picture picture = of_map(4, 100, 1);
  for (int i = 0; i < 100; ++i) picture.panels[0].y.ticks.push_back({i + 0.0, "0x7f00" + std::to_string(i)});
  const std::string svg = to_svg(picture);
  std::vector<double> places;
  for (std::size_t at = svg.find("\">0x7f"); at != std::string::npos; at = svg.find("\">0x7f", at + 1)) {
    places.push_back(std::stod(svg.substr(svg.rfind(" y=\"", at) + 4)));
  }
  std::sort(places.begin(), places.end());
  REQUIRE(places.size() > 5);
  for (std::size_t i = 1; i < places.size(); ++i) CHECK(places[i] - places[i - 1] >= 14.9);
}

TEST_CASE("page: no text can end the element that contains it") {
  Picture picture = of_series({0, 1}, {1, 2}, Series::Form::line);
  picture.panels[0].series[0].name = "</script><script>alert(1)</script>";
  const std::string page = to_html(picture, "{\"name\": \"</script>\"}");
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  CHECK(page.find("\\u003c/script>\"}") != std::string::npos);
  CHECK(page == to_html(picture, "{\"name\": \"</script>\"}"));
}

TEST_CASE("picture: a table is below the panels, line by line, in svg and page") {
  Picture picture = of_series({0, 1}, {1, 2}, Series::Form::line);
  const std::string without = to_svg(picture);
  picture.table = "name  time\na<b   1 ms\n";
  const std::string svg = to_svg(picture);
  check_sound(svg);
  CHECK(svg.size() > without.size());
  CHECK(svg.find(">name\u00a0\u00a0time</text>") != std::string::npos);
  CHECK(svg.find(">a&lt;b\u00a0\u00a0\u00a01\u00a0ms</text>") != std::string::npos);
  const std::string page = to_html(picture, "{}");
  CHECK((page.find("<pre>name  time\na&lt;b   1 ms\n</pre>") != std::string::npos ||
         page.find("a&lt;b\u00a0\u00a0\u00a01") != std::string::npos));
}

TEST_CASE("picture file: the ending chooses the form") {
  CHECK(PictureFile::form_of("a.svg") == PictureFile::Form::svg);
  CHECK(PictureFile::form_of("a/b.c.html") == PictureFile::Form::html);
  CHECK(PictureFile::form_of("a.png") == PictureFile::Form::png);
  CHECK(PictureFile::form_of("a.pdf") == PictureFile::Form::pdf);
  for (const char* const path : {"", "svg", "a.jpg", "a.svg.gz"}) CHECK_FALSE(PictureFile::form_of(path));
}

TEST_CASE("svg: large cells of a map have their numbers if it asks for them, and the least share is the best") {
  Picture picture = of_map(2, 2, 0.25);
  HeatMap& heat = *picture.panels[0].heat;
  heat.unit = Unit::share;
  heat.cells = {0.25, 1e-4, 0, 0.5};
  CHECK(to_svg(picture).find(">25 %<") == std::string::npos);
  heat.numbers = true;
  for (const char* const number : {">25 %<", ">best<", ">50 %<"})
    CHECK(to_svg(picture).find(number) != std::string::npos);
  CHECK(to_svg(picture).find(">0 %<") == std::string::npos);
}

TEST_CASE("svg: bands of steps go along and up, and a series has the colour that it asks for") {
  Picture picture = of_series({0, 10}, {5, 7}, Series::Form::step_band);
  CHECK(to_svg(picture).find("class=\"f0\"") != std::string::npos);
  for (Series& series : picture.panels[0].series) series.look = 4;
  const std::string svg = to_svg(picture);
  CHECK(svg.find("class=\"f4 edge\"") != std::string::npos);
  CHECK(svg.find("class=\"f0\"") == std::string::npos);
}

TEST_CASE("svg: axes of points begin at 0") {
  Panel panel{"points", {"time", Unit::share}, {"memory", Unit::share}};
  panel.series = {{"a", {0.98}, {1}, Series::Form::point}, {"b", {1.02}, {1.1}, Series::Form::point}};
  CHECK(y_range(panel).low == 0);
  CHECK(x_range({"", "", {panel}}, panel).low == 0);
  CHECK(x_range({"", "", {panel}}, panel).high > 1.02);
}
