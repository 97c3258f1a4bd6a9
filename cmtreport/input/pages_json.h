/// Writes the holders of pages as JSON, beside the figures of overhead --json.
#pragma once

#include <optional>

#include "cmtreport/held_pages/page_pass.h"
#include "cmtreport/input/read_json.h"

namespace cmt::report {

/// Returns the figures of the pages: `written`, which overhead --json wrote, or else figures of the same form. To these
/// it adds in holders.by_function the first 100 holders: [name, blocks, live_bytes, page_bytes, unused_bytes,
/// sole_bytes].
Json pages_json(const HeldPages& held, const Recording& recording, const std::optional<Json>& written);

}  // namespace cmt::report
