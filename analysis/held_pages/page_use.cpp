// Counts the figures of holders in one walk over the pages, as page_use.h describes.
#include "analysis/held_pages/page_use.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "analysis/held_pages/page_walk.h"

namespace cmt::analysis {
namespace {

constexpr std::array<std::pair<PageMetric, std::string_view>, 8> page_metric_names{
    {{PageMetric::unused, "unused"},
     {PageMetric::pages, "pages"},
     {PageMetric::sole, "sole"},
     {PageMetric::live, "live"},
     {PageMetric::blocks, "blocks"},
     {PageMetric::old_pages, "old-pages"},
     {PageMetric::pinned, "pinned"},
     {PageMetric::separable, "separable"}}};

/// Visits the pages and adds up the figures of the blocks on them.
class PageUseCounter {
 public:
  struct Mark {
    std::uint32_t entry;
    bool is_old;
    bool is_small;  ///< enough to pin a page
  };

  PageUseCounter(int page_shift, std::uint64_t old_before, const std::function<KeyId(const heap::PlacedBlock&)>& key_of)
      : page_size_(std::uint64_t{1} << page_shift), old_before_(old_before), key_of_(key_of) {
    uses_.page_size = page_size_;
  }

  Mark begin_block(const heap::PlacedBlock& block) {
    const std::uint64_t gap = block.address - previous_.address - previous_.size;
    if (gap <= small_gap_max && is_old(previous_)) old_gaps_ += gap;
    previous_ = block;
    const std::uint32_t entry = entry_of(key_of_(block));
    PageUse& use = uses_of_[entry].use;
    ++use.blocks;
    use.live_bytes += block.size;
    const bool old = is_old(block);
    use.old_blocks += old;
    if (old) use.old_bytes += block.size;
    return {entry, old, block.size <= page_size_ / 8};
  }

  void inner_pages(const Mark& mark, std::uint64_t bytes) {
    PageUse& use = uses_of_[mark.entry].use;
    use.page_bytes += bytes;
    use.sole_bytes += bytes;
    if (mark.is_old) use.old_page_bytes += bytes;
  }

  void page(const std::vector<OnPage<Mark>>& blocks) {
    assert(!blocks.empty());
    std::uint64_t used = 0, old_used = std::exchange(old_gaps_, 0), old_blocks = 0;
    for (const OnPage<Mark>& each : blocks) {
      used += each.bytes;
      old_blocks += each.mark.is_old;
      if (each.mark.is_old) old_used += each.bytes;
    }
    const std::uint64_t unused = page_size_ - std::min(used, page_size_);
    const auto separable = static_cast<std::int64_t>(page_size_ - old_used);
    std::uint64_t rank = 0, old_rank = 0;
    for (const OnPage<Mark>& each : blocks) {
      PageUse& use = uses_of_[each.mark.entry].use;
      use.page_bytes += share_of(page_size_, blocks.size(), rank);
      use.unused_bytes += share_of(unused, blocks.size(), rank++);
      if (!each.mark.is_old) continue;
      use.old_page_bytes += share_of(page_size_, old_blocks, old_rank);
      const auto share = static_cast<std::int64_t>(share_of(magnitude(separable), old_blocks, old_rank++));
      use.separable_bytes += separable < 0 ? -share : share;
    }
    const Mark& first = blocks.front().mark;
    if (blocks.size() == 1 && first.is_old && first.is_small) ++uses_of_[first.entry].use.pinned_pages;
    add_owners(blocks);
  }

  PageUses finish() {
    uses_.entries.reserve(uses_of_.size());
    for (const std::uint32_t index : index_) {
      if (index != 0) uses_.entries.push_back({uses_of_[index - 1].key, uses_of_[index - 1].use});
    }
    return std::move(uses_);
  }

 private:
  static std::uint64_t magnitude(std::int64_t number) {
    return static_cast<std::uint64_t>(number < 0 ? -number : number);
  }
  bool is_old(const heap::PlacedBlock& block) const { return block.born < old_before_; }

  /// Returns the place of the key's figures in uses_of_.
  std::uint32_t entry_of(KeyId key) {
    if (key >= index_.size()) index_.resize(std::max<std::size_t>(key + std::size_t{1}, index_.size() * 2));
    std::uint32_t& index = index_[key];
    if (index == 0) {
      uses_of_.push_back({key, {}});
      index = static_cast<std::uint32_t>(uses_of_.size());
    }
    return index - 1;
  }

  /// Adds the page's keys: the only key has the page alone, several keys share it.
  void add_owners(const std::vector<OnPage<Mark>>& blocks) {
    owners_.clear();
    for (const OnPage<Mark>& each : blocks) {
      if (owners_.empty() || owners_.back() != each.mark.entry) owners_.push_back(each.mark.entry);
    }
    std::sort(owners_.begin(), owners_.end());
    owners_.erase(std::unique(owners_.begin(), owners_.end()), owners_.end());
    if (owners_.size() == 1) {
      uses_of_[owners_.front()].use.sole_bytes += page_size_;
      return;
    }
    uses_.shared_pages.push_back(static_cast<KeyId>(owners_.size()));
    for (const std::uint32_t entry : owners_) uses_.shared_pages.push_back(uses_of_[entry].key);
  }

  std::uint64_t page_size_;
  std::uint64_t old_before_;
  const std::function<KeyId(const heap::PlacedBlock&)>& key_of_;
  struct KeyUse {
    KeyId key;
    PageUse use;
  };
  std::vector<std::uint32_t> index_;  // by key: its place in uses_of_ + 1; 0: none
  std::deque<KeyUse> uses_of_;        // a vector would need three times their memory while it grows
  heap::PlacedBlock previous_{};
  std::uint64_t old_gaps_ = 0;         // bytes of small gaps after old blocks of the page that is open
  std::vector<std::uint32_t> owners_;  // of a page
  PageUses uses_;
};

}  // namespace

PageUse& PageUse::operator+=(const PageUse& more) {
  blocks += more.blocks;
  live_bytes += more.live_bytes;
  page_bytes += more.page_bytes;
  unused_bytes += more.unused_bytes;
  sole_bytes += more.sole_bytes;
  old_blocks += more.old_blocks;
  old_bytes += more.old_bytes;
  old_page_bytes += more.old_page_bytes;
  pinned_pages += more.pinned_pages;
  separable_bytes += more.separable_bytes;
  return *this;
}

std::int64_t PageUse::metric(PageMetric metric) const {
  switch (metric) {
    case PageMetric::unused:
      return static_cast<std::int64_t>(unused_bytes);
    case PageMetric::pages:
      return static_cast<std::int64_t>(page_bytes);
    case PageMetric::sole:
      return static_cast<std::int64_t>(sole_bytes);
    case PageMetric::live:
      return static_cast<std::int64_t>(live_bytes);
    case PageMetric::blocks:
      return static_cast<std::int64_t>(blocks);
    case PageMetric::old_pages:
      return static_cast<std::int64_t>(old_page_bytes);
    case PageMetric::pinned:
      return static_cast<std::int64_t>(pinned_pages);
    case PageMetric::separable:
      return separable_bytes;
  }
  return 0;
}

std::string_view name(PageMetric metric) {
  return std::find_if(page_metric_names.begin(), page_metric_names.end(),
                      [metric](const auto& each) { return each.first == metric; })
      ->second;
}

std::optional<PageMetric> parse_page_metric(std::string_view text) {
  for (const auto& [metric, metric_name] : page_metric_names) {
    if (metric_name == text) return metric;
  }
  return std::nullopt;
}

PageUses find_page_uses(const heap::AddressIndex& live, int page_shift, std::uint64_t old_before,
                        const std::function<KeyId(const heap::PlacedBlock&)>& key_of) {
  PageUseCounter counter(page_shift, old_before, key_of);
  walk_pages(live, page_shift, counter);
  return counter.finish();
}

PageUses shown_uses(PageUses uses, const ShownStacks& shown) {
  if (shown.nodes.empty()) return uses;
  std::map<KeyId, PageUse> by_key;
  for (const PageUses::Entry& entry : uses.entries) by_key[shown.of(entry.key)] += entry.use;
  std::vector<KeyId> shared;
  for (std::size_t at = 0; at < uses.shared_pages.size(); at += uses.shared_pages[at] + std::size_t{1}) {
    std::set<KeyId> keys;
    for (std::size_t i = 1; i <= uses.shared_pages[at]; ++i) keys.insert(shown.of(uses.shared_pages[at + i]));
    if (keys.size() == 1) {
      by_key[*keys.begin()].sole_bytes += uses.page_size;
      continue;
    }
    shared.push_back(static_cast<KeyId>(keys.size()));
    shared.insert(shared.end(), keys.begin(), keys.end());
  }
  uses.entries.clear();
  for (const auto& [key, use] : by_key) uses.entries.push_back({.key = key, .use = use});
  uses.shared_pages = std::move(shared);
  return uses;
}

}  // namespace cmt::analysis
