#pragma once

#include <string>
#include <string_view>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// A picture as one HTML page that opens anywhere, without a network: it zooms by dragging, shows the numbers under the
/// pointer, and holds `numbers`, the tool's JSON, in its element of that name. Its content policy lets run and style
/// nothing but what is in it, by hash. Where uPlot was not there when this was built, it is the SVG in a page.
std::string to_html(const Picture& picture, std::string_view numbers);

/// Whether to_html() draws what zooms.
bool page_zooms();

/// What page.js draws. Internal.
std::string page_json(const Picture& picture);

}  // namespace cmt::output
