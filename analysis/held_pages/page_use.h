/// Finds the holders of pages: figures of the blocks that were live at one moment, by the stack that made them.
///
/// The blocks on a page share its bytes and its unused bytes evenly.
///
/// Old, pinned: as in overhead's summary (analysis/places/summary.h). A block is old if more bytes were allocated since
/// it was made than are live. A page is pinned if a single block is on it, which is old and at most an eighth of the
/// page.
///
/// Separable: if the old blocks were packed together, apart from all others, the pages that they are on could be given
/// back. A page would free all bytes but those of its old blocks and of the gaps of 31 bytes or less after them. A
/// page's old blocks share these bytes evenly:
///
///     |old...new.....gap.old..|     separable: the page less both old blocks, half of it by each
///
/// A block has no share in a page that it fills. The sum over all blocks, in whole pages, is the summary's
/// separable_pages. (A gap that ends on the next page counts on the page of its block. So a full page may have up to
/// -31 bytes.)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/stacks/native_frames.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {

/// The largest gap that is the allocator's rounding and headers: no block would fit.
inline constexpr std::uint64_t small_gap_max = 31;

/// The figure by which holders of pages are compared.
enum class PageMetric { unused, pages, sole, live, blocks, old_pages, pinned, separable };

/// The pages that the blocks of a stack, or of many, hold at one moment.
struct PageUse {
  using Metric = PageMetric;
  static constexpr PageMetric metric_default = PageMetric::unused;

  std::uint64_t blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::uint64_t unused_bytes = 0;
  std::uint64_t sole_bytes = 0;  ///< unknown for callers; of a pool all figures of pages are
  std::uint64_t old_blocks = 0;
  std::uint64_t old_bytes = 0;
  std::uint64_t old_page_bytes = 0;
  std::uint64_t pinned_pages = 0;
  std::int64_t separable_bytes = 0;

  /// Makes the figures of pages unknown.
  void forget_pages() { page_bytes = unused_bytes = sole_bytes = old_page_bytes = pinned_pages = unknown; }
  bool has_pages() const { return page_bytes != unknown; }

  PageUse& operator+=(const PageUse& more);
  std::int64_t metric(PageMetric metric) const;
  bool operator==(const PageUse&) const = default;
};

template <class Visitor, output::DescribedAs<PageUse> U>
void describe(Visitor& field, U& use) {
  field("blocks", use.blocks, "live blocks");
  field("live_bytes", use.live_bytes, "bytes asked for by them");
  field("page_bytes", output::nullable(use.page_bytes),
        "their share of the pages that they are on, which blocks of a page share evenly; null of a pool, as are the "
        "other figures of pages");
  field("unused_bytes", output::nullable(use.unused_bytes), "of that share: bytes that no block asked for");
  field("sole_bytes", output::nullable(use.sole_bytes),
        "pages that no other block is on: free if these blocks were not there; null of a caller");
  field("old_blocks", use.old_blocks, "blocks since which more bytes were allocated than are live");
  field("old_bytes", use.old_bytes, "bytes asked for by old blocks");
  field("old_page_bytes", output::nullable(use.old_page_bytes),
        "their share of the pages that old blocks are on, which old blocks of a page share evenly");
  field("pinned_pages", output::nullable(use.pinned_pages), "pages that only one of the old blocks is on, a small one");
  field("separable_bytes", use.has_pages() ? std::optional(use.separable_bytes) : std::nullopt,
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
    std::string name{};  ///< empty for stacks
  };
  std::vector<Entry> entries;   ///< by rising key; sole_bytes: pages on which no other key's block is
  std::uint64_t page_size = 0;  ///< 0: the blocks are of a pool, and their pages are not known
  /// For each page with blocks of several keys: the number of keys, then the keys.
  std::vector<KeyId> shared_pages;
};

/// Finds the pages that the live blocks hold. `key_of` returns a block's set. A block is old if it was made before
/// `old_before`, by the clock of its `born`. Memory: 210 bytes a key, and 4 for each key on each page that keys share.
PageUses find_page_uses(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before,
                        const std::function<KeyId(const heap::PlacedBlock&)>& key_of);

/// Returns the pages of shown stacks, as shown_uses() of native_frames.h.
PageUses shown_uses(PageUses uses, const ShownStacks& shown);

}  // namespace cmt::analysis
