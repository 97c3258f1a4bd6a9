// Puts the page together: styles, the packed report, and scripts. Its policy allows exactly these by their digests, so
// that no name from a trace can run.

#include "cmtreport/page/report_page.h"

#include <algorithm>
#include <span>
#include <utility>

#include "report_parts.h"  // made by CMake
#include "toolkit/output/fields.h"
#include "toolkit/picture/axis.h"

namespace cmt::report {

template <class Visitor, output::DescribedAs<Maker> M>
void describe(Visitor& field, M& maker) {
  field("version", maker.version, "");
  field("time", maker.time, "");
  field("command", maker.command, "");
}

namespace {

constexpr std::string_view lacking =
    "<p class=\"lacking\">This page's interactive parts are missing: cmtreport was built without uPlot and "
    "flame-chart-js. Run <code>script/bootstrap</code> in the sources, and build again. <code>cmtreport --text</code> "
    "and <code>--json</code> have the same figures.</p>\n";

constexpr std::string_view frame =
    "</head>\n<body>\n<noscript><p class=\"lacking\">This page needs JavaScript.</p></noscript>\n"
    "<main id=\"page\" aria-busy=\"true\"><p class=\"loading\">Reading the report\xe2\x80\xa6</p></main>\n";

}  // namespace

bool page_is_interactive() {
  return std::none_of(std::begin(scripts), std::end(scripts), [](const PagePart& part) { return part.text.empty(); });
}

std::string to_page(std::string_view title, std::string_view json, PageOf page_of, const Maker& maker) {
  picture::PackedData packed;
  packed.append(json);
  return to_page(title, std::move(packed), page_of, maker);
}

std::string to_page(std::string_view title, picture::PackedData json, PageOf page_of, const Maker& maker) {
  const std::vector<PagePart> styles{svg_style, uplot_style, report_style};
  const bool draws = page_is_interactive();
  std::vector<PagePart> running;
  if (draws) {
    running.assign(std::begin(scripts), std::end(scripts));
    const std::span<const PagePart> own =
        page_of == PageOf::trace ? std::span<const PagePart>(trace_scripts) : std::span<const PagePart>(diff_scripts);
    running.insert(running.end(), own.begin(), own.end());
  }

  std::string page = picture::page_head(title, styles, running);
  for (const PagePart& style : styles) page += picture::element("style", style.text);
  page += draws ? std::string(frame) : "</head>\n<body>\n" + std::string(lacking);
  page += picture::data_element("tick_rules", picture::tick_rules_json());
  page += picture::data_element("maker", output::json_text(maker));
  page += picture::packed_data_element("report", std::move(json));
  if (draws)
    page += picture::licence_comment("uPlot", uplot_licence) +
            picture::licence_comment("flame-chart-js", flame_chart_licence);
  for (const PagePart& script : running) page += picture::element("script", script.text);
  return page + "</body>\n</html>\n";
}

}  // namespace cmt::report
