#include "toolkit/picture/address_rows.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "toolkit/output/numbers.h"

namespace cmt::output {

std::size_t AddressRows::row_of(std::uint64_t bin) const {
  const auto found = std::lower_bound(bins.begin(), bins.end(), bin);
  assert(found != bins.end() && *found == bin);
  return rows[static_cast<std::size_t>(found - bins.begin())];
}

AddressRows address_rows(std::vector<std::uint64_t> bins, std::uint64_t bin_bytes) {
  AddressRows result{.bins = std::move(bins), .rows = {}, .edges = {}, .axis = {.title = "address"}};
  auto& used = result.bins;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const std::uint64_t kept_gap = used.size() / 16 + 1;
  const auto break_room = static_cast<double>(used.size() / 40 + 1);
  double place = 0;
  std::vector<Tick> between;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::uint64_t gap = i == 0 ? 0 : used[i] - used[i - 1] - 1;
    if (gap > kept_gap) result.axis.breaks.push_back(place + break_room / 2);
    place += gap > kept_gap ? break_room : static_cast<double>(gap);
    const Tick tick{place, "0x" + hex(used[i] * bin_bytes)};
    if (i == 0 || gap > kept_gap)
      result.axis.ticks.push_back(tick);
    else if (i % (used.size() / 8 + 1) == 0)
      between.push_back(tick);
    if (result.edges.empty() || result.edges.back() < place) result.edges.push_back(place);
    result.rows.push_back(result.edges.size() - 1);
    result.edges.push_back(place + 1);
    place += 1;
  }
  result.axis.ticks.insert(result.axis.ticks.end(), between.begin(), between.end());
  return result;
}

}  // namespace cmt::output
