/// Who holds the pages: figures of the blocks that were live at one moment, by the stack that made them.
///
/// A page is shared evenly among the blocks that are on it: that is their share of its bytes and of its unused bytes.
///
/// Old, pinned: as overhead's summary has it (analysis/places/summary.h). A block is old when more bytes
/// were allocated since it was made than are live; a page is pinned when a single block is on it, which is old and no
/// larger than an eighth of the page.
///
/// Separable: if the old blocks lay packed together, apart from all others, the pages that they are on could be given
/// back. Of each such page that frees what is not taken by its old blocks and by the gaps of 31 bytes or less behind
/// these. A page's old blocks share that evenly:
///
///     |old...new.....gap.old..|     separable: the page less both old blocks, half of it by each
///
/// A block has no share in a page that it fills. The sum over all blocks, in whole pages, is the summary's
/// separable_pages. (A gap that ends on the next page counts on that of its block: so a full page may have up to 31
/// bytes less than none.)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/fates/use.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

/// A gap up to this is the allocator's rounding and headers: no block would fit.
inline constexpr std::uint64_t small_gap_max = 31;

/// A figure by which holders of pages are compared.
enum class PageMetric { unused, pages, sole, live, blocks, old_pages, pinned, separable };

/// What the blocks of a stack, or of many, hold at one moment.
struct PageUse {
  using Metric = PageMetric;
  static constexpr PageMetric metric_default = PageMetric::unused;

  std::uint64_t blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t unused_bytes = 0;
  std::uint64_t sole_bytes = 0;  ///< unknown: not told
  std::uint64_t old_blocks = 0;
  std::uint64_t old_bytes = 0;
  std::uint64_t old_page_bytes = 0;
  std::uint64_t pinned_pages = 0;
  std::int64_t separable_bytes = 0;

  PageUse& operator+=(const PageUse& more);
  std::int64_t metric(PageMetric metric) const;
  bool operator==(const PageUse&) const = default;
};

template <class Visitor, output::DescribedAs<PageUse> U>
void describe(Visitor& field, U& use) {
  field("blocks", use.blocks, "live blocks");
  field("live_bytes", use.live_bytes, "bytes asked for by them");
  field("page_bytes", use.page_bytes, "their share of the pages that they are on, which blocks of a page share evenly");
  field("unused_bytes", use.unused_bytes, "of that share: bytes that no block asked for");
  field("sole_bytes", output::nullable(use.sole_bytes),
        "pages that no other block is on: free if these blocks were not there; null of a caller");
  field("old_blocks", use.old_blocks, "blocks since which more bytes were allocated than are live");
  field("old_bytes", use.old_bytes, "bytes asked for by old blocks");
  field("old_page_bytes", use.old_page_bytes,
        "their share of the pages that old blocks are on, which old blocks of a page share evenly");
  field("pinned_pages", use.pinned_pages, "pages that only one of the old blocks is on, a small one");
  field("separable_bytes", use.separable_bytes,
        "what separating long- from short-lived blocks would give back: their share of the pages that old blocks are "
        "on, less what these would take if they were packed");
}

std::string_view name(PageMetric metric);
std::optional<PageMetric> parse_page_metric(std::string_view text);
inline constexpr std::string_view page_metrics = "unused, pages, sole, live, blocks, old-pages, pinned or separable";

/// The stacks, or other sets, whose blocks hold pages at one moment.
struct PageUses {
  struct Entry {
    KeyId key;
    PageUse use;
    std::string name{};  ///< where keys are no stacks
  };
  std::vector<Entry> entries;  ///< by rising key; sole_bytes: pages on which no other key's block is
  std::uint64_t page_size = 0;
  /// Of each page with blocks of several keys: how many keys, and these.
  std::vector<KeyId> shared_pages;
};

/// Finds what the live blocks hold. `key_of` tells a block's set; a block is old if it was made before `old_before`, in
/// the clock of its `born`. Memory: 150 bytes a key, and 4 for each key on each page that keys share.
PageUses find_page_uses(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before,
                        const std::function<KeyId(const heap::PlacedBlock&)>& key_of);

}  // namespace cmt::analysis
