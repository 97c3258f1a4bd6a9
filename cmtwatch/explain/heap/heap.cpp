// Finds the regions of all arenas and the blocks with mappings of their own, walks them, and checks the result against
// malloc's own sums.
#include "cmtwatch/explain/heap/heap.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "cmtwatch/explain/heap/walk.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t heaps_max = 65536;

/// The head of a heap of a thread's arena (`heap_info`).
struct HeapHead {
  std::uint64_t arena, before, bytes;
};

std::uint64_t aligned(std::uint64_t address) { return (address + chunk_alignment - 1) & ~(chunk_alignment - 1); }

/// Private anonymous memory in which malloc may have blocks.
bool is_anonymous(const process::Mapping& mapping) {
  return mapping.permissions.starts_with("rw-p") && (mapping.name.empty() || mapping.name.starts_with("[anon:"));
}

/// The parts of a range that are not in `claimed`, which rise and do not overlap.
std::vector<Range> without(Range range, const std::vector<Range>& claimed) {
  std::vector<Range> left;
  for (const Range& each : claimed) {
    if (each.end <= range.begin || each.begin >= range.end) continue;
    if (each.begin > range.begin) left.push_back({range.begin, each.begin});
    range.begin = each.end;
  }
  if (range.begin < range.end) left.push_back(range);
  return left;
}

class HeapReader {
 public:
  HeapReader(AddressSpace& memory, GlibcMalloc malloc, const std::vector<LibcThread>& threads, BlockSites* sites)
      : memory_(memory), sites_(sites) {
    if (sites != nullptr) heap_.figures.by_site.resize(sites->names.size());
    heap_.lists = read_free_lists(memory, malloc, threads);
    heap_.malloc = std::move(malloc);
    for (const LibcThread& thread : threads) {
      if (thread.stack.end != 0) stacks_.push_back(thread.stack);
    }
  }

  GlibcHeap read() {
    HeapWalker walker(memory_, heap_.malloc, heap_.lists, heap_.figures, sites_);
    for (const HeapRegion& region : find_regions()) take(walker, region);
    search_mappings(walker);
    drop_false_blocks();
    count_missed_caches();
    std::sort(heap_.heap_ranges.begin(), heap_.heap_ranges.end(), by_begin);
    constexpr std::size_t types_listed = 20;
    heap_.types = name_types(memory_, heap_.figures, types_listed);
    check();
    return std::move(heap_);
  }

 private:
  static bool by_begin(const Range& a, const Range& b) { return a.begin < b.begin; }

  // By address. They do not overlap.
  std::vector<HeapRegion> find_regions() {
    std::vector<HeapRegion> regions;
    for (std::size_t i = 1; i < heap_.malloc.arenas.size(); ++i) add_heaps(heap_.malloc.arenas[i], regions);
    add_main(regions);
    std::sort(regions.begin(), regions.end(),
              [](const HeapRegion& a, const HeapRegion& b) { return by_begin(a.range, b.range); });
    std::uint64_t end = 0;
    std::erase_if(regions, [&](const HeapRegion& region) {
      if (region.range.begin < end) {
        doubt("two heaps overlap");
        return true;
      }
      end = region.range.end;
      return false;
    });
    return regions;
  }

  // Where a range leaves the memory that malloc may have; its end if it does not.
  std::uint64_t end_of_memory(Range range) const {
    std::uint64_t at = range.begin;
    while (at < range.end) {
      const process::Mapping* const mapping = memory_.find(at);
      if (mapping == nullptr || (!is_anonymous(*mapping) && mapping->name != "[heap]")) return at;
      at = mapping->end;
    }
    return range.end;
  }

  bool begins_heap(std::uint64_t address, const Arena& arena) {
    const auto head = memory_.read<HeapHead>(address);
    return head && head->arena == arena.address && arena.top - address < head->bytes;
  }

  // The heaps of a thread's arena, from the last, which has the top, to the first. They are aligned to the most bytes
  // that one can have. With reserved huge pages these are four of them, and in glibc 2.43 64 MiB as without. Such a
  // heap of 8 MiB may begin where one of 64 MiB would.
  void add_heaps(const Arena& arena, std::vector<HeapRegion>& regions) {
    constexpr std::uint64_t usual = std::uint64_t{64} << 20;
    const auto& parameters = heap_.malloc.parameters;
    const std::uint64_t huge = parameters ? 4 * parameters->huge_page_bytes : 0;
    const auto [step, most] = std::minmax({usual, huge != 0 ? huge : usual});
    std::set<std::uint64_t> seen;
    std::uint64_t at = arena.top & ~(usual - 1);
    if (huge != 0 && !begins_heap(at, arena)) at = arena.top & ~(huge - 1);
    for (std::uint64_t count = 0; at != 0 && count < heaps_max; ++count) {
      const auto head = memory_.read<HeapHead>(at);
      const bool is_sound = head && head->arena == arena.address && head->bytes >= page_bytes && head->bytes <= most &&
                            head->bytes % page_bytes == 0 && head->before % step == 0 && seen.insert(at).second;
      if (!is_sound) {
        doubt("a heap of an arena was not found");
        return;
      }
      const bool is_first = arena.address > at && arena.address < at + page_bytes;
      const std::uint64_t first = is_first ? aligned(arena.address + heap_.malloc.layout.state_bytes)
                                           : at + heap_.malloc.layout.heap_info_bytes;
      const std::uint64_t end = end_of_memory({at, at + head->bytes});
      if (first >= end) return doubt("a heap of an arena was not found");
      if (end < at + head->bytes) doubt("a heap of an arena is longer than its memory");
      regions.push_back({{at, end}, first, end, arena.top});
      at = head->before;
    }
  }

  // [heap] may be several mappings, and is the program's alone if sbrk(2) never gave malloc any memory.
  void add_main(std::vector<HeapRegion>& regions) {
    const std::uint64_t base = heap_.malloc.parameters ? heap_.malloc.parameters->sbrk_base : 0;
    const process::Mapping* const first_mapping = memory_.find(base);
    if (!heap_.malloc.is_main_contiguous && first_mapping != nullptr && first_mapping->name != "[heap]") return;
    Range range{};
    for (const process::Mapping& mapping : memory_.mappings()) {
      const bool is_heap =
          mapping.name == "[heap]" || (range.end == 0 && &mapping == first_mapping && is_anonymous(mapping));
      if (!is_heap || (range.end != 0 && mapping.begin != range.end)) continue;
      if (range.end == 0) range.begin = mapping.begin;
      range.end = mapping.end;
    }
    if (range.end == 0) return;
    // The kernel may join static data to [heap], and the program may call sbrk(2) before malloc does.
    if (range.contains(base)) range.begin = page_begin(base);
    const std::uint64_t first = aligned(range.contains(base) ? base : range.begin);
    regions.push_back({range, first, range.end, heap_.malloc.arenas[0].top, true});
  }

  void take(HeapWalker& walker, const HeapRegion& region) {
    const Range range{region.range.begin, walker.walk(region)};
    heap_.heap_ranges.push_back(range);
    heap_.heap_resident += memory_.resident_bytes(range);
  }

  // Mappings that touch are searched as one: madvise(2) on pages of a block, for huge pages, splits the block's
  // mapping.
  void search_mappings(HeapWalker& walker) {
    std::vector<Range> claimed = heap_.heap_ranges;
    claimed.insert(claimed.end(), stacks_.begin(), stacks_.end());
    std::sort(claimed.begin(), claimed.end(), by_begin);
    Range joined{};
    const auto search_joined = [&] {
      for (const Range& range : without(joined, claimed)) search(walker, range);
    };
    for (const process::Mapping& mapping : memory_.mappings()) {
      if (!is_anonymous(mapping)) continue;
      if (mapping.begin != joined.end) {
        search_joined();
        joined.begin = mapping.begin;
      }
      joined.end = mapping.end;
    }
    search_joined();
  }

  using Head = std::array<std::uint64_t, 2>;  // of a chunk: the bytes before, and its size

  // Looks at the begin of each resident page: the mappings of blocks merge with each other and with anything.
  void search(HeapWalker& walker, Range range) {
    constexpr std::size_t first_batch = 16, last_batch = 1000;
    std::size_t batch = first_batch;
    for (std::uint64_t at = range.begin; at < range.end;) {
      std::vector<std::uint64_t> pages;
      for (; pages.size() < batch; at += page_bytes) {
        at = memory_.next_resident({at, range.end});
        if (at >= range.end) break;
        pages.push_back(at);
      }
      const std::uint64_t found_end = search_pages(walker, pages, range.end);
      batch = found_end != 0 ? first_batch : std::min(batch * 2, last_batch);
      if (found_end != 0) at = found_end;
    }
  }

  // Returns where the search goes on after what was found last, which may be among the pages; 0: nothing was found.
  std::uint64_t search_pages(HeapWalker& walker, const std::vector<std::uint64_t>& pages, std::uint64_t end) {
    std::vector<Head> heads(pages.size());
    std::vector<AddressSpace::Piece> pieces;
    for (std::size_t i = 0; i < pages.size(); ++i) pieces.push_back({pages[i], heads[i].data(), sizeof heads[i]});
    memory_.read_pieces(pieces);
    std::uint64_t found_end = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (pages[i] < found_end) continue;
      const std::uint64_t found = find_at(walker, pages[i], heads[i], end);
      if (found != 0) found_end = found;
    }
    return found_end <= (pages.empty() ? 0 : pages.back()) ? 0 : found_end;
  }

  // Returns the end of a mapped block or of a piece of the main arena that begins here; 0: there is none.
  std::uint64_t find_at(HeapWalker& walker, std::uint64_t page, const Head& head, std::uint64_t end) {
    const std::uint64_t bytes = chunk_bytes(head[1]), extra = heap_.malloc.layout.mapped_header;
    const std::uint64_t before = head[0] & ~std::uint64_t{1};
    const std::uint64_t flags = head[1] & 7;
    if (flags == chunk_is_mapped && bytes != 0 && before % page_bytes == 0 && before < bytes && bytes <= end - page &&
        (bytes + extra) % page_bytes == 0 && bytes + extra <= end - page) {
      take_mapped({page, page + bytes + extra});
      return page + bytes + extra;
    }
    const bool may_be_piece = !heap_.malloc.is_main_contiguous && flags == chunk_before_in_use && bytes >= 32 &&
                              bytes % chunk_alignment == 0 && bytes <= end - page;
    const std::uint64_t top = heap_.malloc.arenas[0].top;
    if (!may_be_piece || !walker.has_chain(page, end, top)) return 0;
    take(walker, {{page, end}, page, end, top, true, true});
    return heap_.heap_ranges.back().end;
  }

  void take_mapped(Range range) {
    ++heap_.mapped.blocks;
    heap_.mapped.traced += sites_ != nullptr && sites_->blocks.find(range.begin + chunk_head_bytes) != nullptr;
    heap_.mapped.bytes += range.bytes();
    heap_.mapped.resident_bytes += memory_.resident_bytes(range);
    heap_.mapped.ranges.push_back(range);
  }

  // Memory of others may look like the head of a block. Malloc's own count and sum then say how many are false, and how
  // large these are together.
  void drop_false_blocks() {
    const auto& parameters = heap_.malloc.parameters;
    MappedBlocks& mapped = heap_.mapped;
    if (!parameters || parameters->mapped_blocks >= mapped.blocks || parameters->mapped_bytes > mapped.bytes) return;
    constexpr std::uint64_t false_max = 3, tried_max = 200;
    const std::uint64_t count = mapped.blocks - parameters->mapped_blocks;
    if (count > false_max || mapped.blocks > tried_max) return;
    std::vector<std::size_t> dropped;
    if (!choose(0, count, mapped.bytes - parameters->mapped_bytes, dropped)) return;
    for (auto index = dropped.rbegin(); index != dropped.rend(); ++index) {
      const Range range = mapped.ranges[*index];
      --mapped.blocks;
      mapped.bytes -= range.bytes();
      mapped.resident_bytes -= memory_.resident_bytes(range);
      mapped.ranges.erase(mapped.ranges.begin() + static_cast<std::ptrdiff_t>(*index));
    }
  }

  // Chooses `count` blocks from number `first` on that have `bytes` together.
  bool choose(std::size_t first, std::uint64_t count, std::uint64_t bytes, std::vector<std::size_t>& chosen) const {
    if (count == 0) return bytes == 0;
    for (std::size_t i = first; i < heap_.mapped.ranges.size(); ++i) {
      if (heap_.mapped.ranges[i].bytes() > bytes) continue;
      chosen.push_back(i);
      if (choose(i + 1, count - 1, bytes - heap_.mapped.ranges[i].bytes(), chosen)) return true;
      chosen.pop_back();
    }
    return false;
  }

  // A thread that runs changes its cache's lists while they are followed. Blocks on the rest of a list are booked as
  // live. The cache's own counts give their number, but not which they are: groups by size, type and site keep them.
  void count_missed_caches() {
    HeapFigures& figures = heap_.figures;
    const FreeLists& lists = heap_.lists;
    if (lists.broken == 0 || lists.counted_blocks <= figures.cached_blocks) return;
    const std::uint64_t blocks = std::min(lists.counted_blocks - figures.cached_blocks, figures.live_blocks);
    const std::uint64_t bytes = std::min(lists.counted_bytes - std::min(figures.cached_bytes, lists.counted_bytes),
                                         std::min(figures.live_bytes, figures.live_resident));
    figures.live_blocks -= blocks;
    figures.cached_blocks += blocks;
    figures.live_bytes -= bytes;
    figures.cached_bytes += bytes;
    figures.live_resident -= bytes;
    figures.cached_resident += bytes;
  }

  void doubt(std::string what) {
    if (std::find(heap_.doubts.begin(), heap_.doubts.end(), what) == heap_.doubts.end())
      heap_.doubts.push_back(std::move(what));
  }

  void check() {
    const auto& parameters = heap_.malloc.parameters;
    if (!parameters)
      doubt("malloc's parameters were not found");
    else if (parameters->mapped_blocks != heap_.mapped.blocks)
      doubt("malloc counts " + output::counted(parameters->mapped_blocks, "large block") +
            " outside of its heaps, and " + output::with_commas(heap_.mapped.blocks) +
            (heap_.mapped.blocks == 1 ? " was" : " were") + " found");
    // From 2.43 on, mremap adds 16 bytes to malloc's sum.
    else if (parameters->mapped_bytes != heap_.mapped.bytes && heap_.malloc.layout.mapped_header == 0)
      doubt("malloc counts " + output::bytes_text(parameters->mapped_bytes) +
            " in large blocks outside of its heaps, and " + output::bytes_text(heap_.mapped.bytes) + " were found");
    std::uint64_t found = 0;
    for (const Range& range : heap_.heap_ranges) found += range.bytes();
    // A piece of an arena that is not contiguous may look like memory of others.
    if (!heap_.malloc.is_main_contiguous && found < heap_.system_bytes())
      doubt("malloc has " + output::bytes_text(heap_.system_bytes()) + " for its heaps, and " +
            output::bytes_text(found) + " were found");
    if (heap_.figures.resyncs != 0)
      doubt("the heap's chain of blocks was lost " + output::counted(heap_.figures.resyncs, "time") + ", for " +
            output::bytes_text(heap_.figures.skipped_bytes));
    const auto tops = std::count_if(heap_.malloc.arenas.begin(), heap_.malloc.arenas.end(),
                                    [](const Arena& arena) { return arena.system_bytes != 0; });
    if (heap_.figures.tops < static_cast<std::uint64_t>(tops)) doubt("the end of an arena was not found");
    if (heap_.figures.swapped_bytes != 0)
      doubt(output::bytes_text(heap_.figures.swapped_bytes) +
            " of the heap are in swap, and were not read: no figure has their blocks");
    // From 2.42 on, a thread has a cache once it frees a block for it. A cache is a live block itself.
    const std::size_t caches = SizeGroups::index(heap_.malloc.layout.cache_chunk);
    if (!heap_.lists.has_caches && heap_.figures.by_size[caches].blocks != 0)
      doubt("the caches of threads were not found: what is in them counts as live");
    if (heap_.lists.broken != 0) doubt("a list of free blocks changed while it was read");
  }

  AddressSpace& memory_;
  BlockSites* const sites_;
  GlibcHeap heap_;
  std::vector<Range> stacks_;
};

}  // namespace

std::uint64_t GlibcHeap::largest_block_bytes() const {
  std::uint64_t largest = figures.largest_live_bytes;
  for (const Range& range : mapped.ranges) largest = std::max(largest, range.bytes());
  return largest;
}

std::uint64_t GlibcHeap::system_bytes() const {
  return std::accumulate(malloc.arenas.begin(), malloc.arenas.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Arena& arena) { return sum + arena.system_bytes; });
}

GlibcHeap read_heap(AddressSpace& memory, GlibcMalloc malloc, const std::vector<LibcThread>& threads,
                    BlockSites* sites) {
  return HeapReader(memory, std::move(malloc), threads, sites).read();
}

}  // namespace cmt::watch::explain
