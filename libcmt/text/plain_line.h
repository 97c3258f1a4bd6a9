#pragma once

#include <string_view>

#include "cmt/event.h"

namespace cmt::text {

/// Reads the line at the begin of `lines`, whole lines in all, if it is one of the common ones in their canonical form:
/// malloc, free, calloc, realloc, operator new and delete, with at most a thread, a time and a usable size. Returns the
/// length of the line, without its LF, and fills in `event`, which holds its defaults. For any other line, which may be
/// right or wrong, returns 0, and the event holds anything.
std::size_t parse_plain(std::string_view lines, Event& event);

}  // namespace cmt::text
