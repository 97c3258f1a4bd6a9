// Adds the holders of pages, by function, to the JSON of overhead.

#include "cmtreport/input/pages_json.h"

#include <algorithm>
#include <utility>

#include "toolkit/output/fields.h"

namespace cmt::report {

Json pages_json(const HeldPages& held, const Recording& recording, const std::optional<Json>& written) {
  constexpr std::size_t most = 100;
  Json pages = written ? *written : Json::parse(output::json_text(held.pass->summary));
  if (held.pass == nullptr) return pages;
  Json holders = Json::array();
  for (std::size_t i = 0; i < std::min(held.holders.size(), most); ++i) {
    const analysis::PageUse& use = held.holders[i].use;
    holders.push_back({recording.tree().at(held.holders[i].function).name, use.blocks, use.live_bytes, use.page_bytes,
                       use.unused_bytes, use.sole_bytes});
  }
  pages["holders"]["by_function"] = std::move(holders);
  return pages;
}

}  // namespace cmt::report
