#pragma once

#include <string>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// A picture as SVG, of one width and as high as its panels need. The same picture gives the same bytes. It is at home
/// on white and, where the viewer prefers dark, on black. Some 10 kB, and up to some 200 kB a map, however much data
/// there is.
std::string to_svg(const Picture& picture);

}  // namespace cmt::output
