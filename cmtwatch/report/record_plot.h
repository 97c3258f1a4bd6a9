#pragma once

#include <string>

#include "cmtwatch/recording/kinds.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

/// A recording as a picture: memory stacked by kind under the line of what the processes have together; of several
/// processes, by process too. Axes, names and subtitle say whether it is proportional or resident.
output::Picture picture_of(const KindSeries& series, const std::string& title);

/// Its numbers, schema cmt.kinds/1.
std::string to_json(const KindSeries& series, const std::string& title);

}  // namespace cmt::watch
