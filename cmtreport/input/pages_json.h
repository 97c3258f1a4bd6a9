#pragma once

#include <optional>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/input/read_json.h"

namespace cmt::report {

/// The figures of the pages as overhead --json has them, or those that it has written, and in holders.by_function the
/// first 100 holders: [name, blocks, live_bytes, page_bytes, unused_bytes, sole_bytes].
Json pages_json(const HeldPages& held, const Recording& recording, const std::optional<Json>& written);

}  // namespace cmt::report
