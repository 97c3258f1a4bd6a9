// Walks over the live blocks heap by heap, and chooses the blocks at the top of each heap that keep most free pages.
#include "analysis/places/heap_tops.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "analysis/places/summary.h"
#include "toolkit/command/open_trace.h"

namespace cmt::analysis {
namespace {

/// Offsets in its page at which the main heap's first block can begin. Before it are the head of its chunk and, since
/// glibc 2.26, the main thread's cache (struct tcache_perthread_struct). Versions 2.30 and 2.42 changed the cache's
/// size.
constexpr std::array<std::uint64_t, 4> first_offsets{0x10, 0x260, 0x2a0, 0x310};

/// The main heap is the blocks up to the first such gap. Mappings are farther away from the heap on all machines.
constexpr std::uint64_t main_gap_min = std::uint64_t{1} << 36;

/// Below it, glibc gives nothing back (M_TRIM_THRESHOLD).
constexpr std::uint64_t gives_back_min = 128 << 10;

constexpr std::uint64_t gap_min = 64 << 10;         // smaller gaps are no candidates
constexpr std::uint64_t largest_size = 1ULL << 47;  // no block of a real program is larger
constexpr std::size_t heaps_max = 8;

constexpr std::uint64_t chunk_head = 16;

/// The bytes of a block's chunk: the least distance to the next block.
std::uint64_t chunk_bytes(std::uint64_t size) { return std::max<std::uint64_t>(32, (size + 8 + 15) & ~15ULL); }

std::uint64_t page_from(std::uint64_t address, int shift) { return (address + (1ULL << shift) - 1) >> shift << shift; }

}  // namespace

/// A heap during a walk, up to the last block that was visited.
struct HeapTopFinder::Heap {
  /// Free pages between two blocks, and what is below them.
  struct Gap {
    std::uint64_t begin = 0;
    std::uint64_t blocks_below = 0;
    std::uint64_t bytes_below = 0;
  };

  std::uint64_t address = 0;
  bool is_main = false;
  std::uint64_t end = 0;  ///< of the last chunk
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t least_next = 0;  ///< where the next block can begin
  std::vector<Gap> gaps{};
  std::array<heap::PlacedBlock, HeapTop::listed_max> last{};  ///< the last blocks; a block's place is its number modulo

  /// The first page has data of the allocator, and stays.
  Heap(std::uint64_t at, bool is_of_main) : address(at), is_main(is_of_main), end(at + 1) {}
};

std::uint64_t HeapTopFinder::lowest_address() const {
  std::uint64_t lowest = unknown;
  for (const auto& [number, range] : ranges_) lowest = std::min(lowest, range.lowest);
  return lowest;
}

/// A mapping of one block begins 16 bytes before the block, a heap at least 48.
bool HeapTopFinder::begins_with_heap(std::uint64_t number) const {
  const auto found = ranges_.find(number);
  const std::uint64_t offset = found == ranges_.end() ? 0 : found->second.lowest - (number << range_shift);
  return offset >= 0x30 && offset < 0x1000;
}

bool HeapTopFinder::is_in_heap(std::uint64_t address) const {
  const std::uint64_t lowest = lowest_address();
  return (address > lowest && address - lowest < main_gap_min) || begins_with_heap(address >> range_shift);
}

/// Whether a heap is known to be the last one of its arena. A heap that continues an arena begins with 48 or 64 bytes.
/// Any request for a block in a heap is below half a heap.
bool HeapTopFinder::ends_arena(std::uint64_t number) const {
  const std::uint64_t begin = number << range_shift, half = std::uint64_t{1} << (range_shift - 1);
  if (ranges_.at(number).highest < begin + half) return true;
  return std::none_of(ranges_.begin(), ranges_.end(), [&](const auto& each) {
    return begins_with_heap(each.first) && each.second.lowest - (each.first << range_shift) <= 0x50;
  });
}

/// Adds a block to its heap. Returns false if glibc does not place blocks so.
bool HeapTopFinder::visit(Heap& heap, const heap::PlacedBlock& block) const {
  if (block.address % 16 != 0 || block.size > largest_size || block.address < heap.least_next) return false;
  const std::uint64_t begin = page_from(heap.end, page_shift_);
  if (block.address - chunk_head >= begin + gap_min) heap.gaps.push_back({begin, heap.blocks, heap.bytes});
  heap.least_next = block.address + chunk_bytes(block.size);
  heap.end = heap.least_next - chunk_head;
  heap.last[heap.blocks % HeapTop::listed_max] = block;
  ++heap.blocks;
  heap.bytes += block.size;
  return true;
}

/// Chooses the gap at whose begin the heap would end if all blocks above it ended. The blocks above it must be small:
/// at most an eighth of what they keep. If several gaps keep three quarters of the most, the one with fewest blocks
/// above it is chosen.
void HeapTopFinder::close(const Heap& heap, const MemoryUse& now, HeapTops& found) const {
  if (!heap.is_main && !ends_arena(heap.address >> range_shift)) return;
  const std::uint64_t top = page_from(heap.end, page_shift_);
  const auto kept = [&](const Heap::Gap& gap) { return std::min(top - gap.begin, resident_); };
  std::uint64_t most = 0;
  for (const Heap::Gap& gap : heap.gaps) {
    if (heap.bytes - gap.bytes_below <= kept(gap) / 8) most = std::max(most, kept(gap));
  }
  if (most < gives_back_min) return;
  const auto chosen = std::find_if(heap.gaps.rbegin(), heap.gaps.rend(), [&](const Heap::Gap& gap) {
    return heap.bytes - gap.bytes_below <= kept(gap) / 8 && kept(gap) >= most - most / 4;
  });
  HeapTop result{.address = heap.address,
                 .is_main = heap.is_main,
                 .live_blocks = heap.blocks,
                 .live_bytes = heap.bytes,
                 .top_blocks = heap.blocks - chosen->blocks_below,
                 .top_bytes = heap.bytes - chosen->bytes_below,
                 .gives_back_bytes_max = kept(*chosen)};
  const std::uint64_t listed = std::min<std::uint64_t>(result.top_blocks, HeapTop::listed_max);
  for (std::uint64_t i = 1; i <= listed; ++i) {
    const heap::PlacedBlock& block = heap.last[(heap.blocks - i) % HeapTop::listed_max];
    result.highest.push_back({.block = block, .age_bytes = now.allocated_bytes - block.born});
  }
  found.gives_back_bytes_max += result.gives_back_bytes_max;
  found.heaps.push_back(std::move(result));
}

void HeapTopFinder::walk(const heap::AddressIndex& live, const MemoryUse& now) {
  const std::uint64_t lowest = lowest_address();
  if (is_refuted_ || has_early_blocks_ || lowest == unknown) return;
  HeapTops found{.unknown_because = {}, .event = now.event, .time_ns = now.time_ns};
  Heap heap(lowest & ~std::uint64_t{0xfff}, true);
  live.for_each([&](const heap::PlacedBlock& block) {
    const std::uint64_t range = block.address >> range_shift;
    const bool is_of_main = heap.is_main && (block.address < heap.end || block.address - heap.end < main_gap_min);
    if (!is_of_main && (heap.is_main || range != heap.address >> range_shift)) {
      if (!begins_with_heap(range)) return;  // a mapping of its own
      close(heap, now, found);
      heap = Heap(range << range_shift, false);
    }
    is_refuted_ |= !visit(heap, block);
  });
  close(heap, now, found);
  most_bytes_ = std::max(most_bytes_, found.gives_back_bytes_max);
  if (found.heaps.empty() || found.gives_back_bytes_max < most_bytes_ - most_bytes_ / 8) return;
  std::stable_sort(found.heaps.begin(), found.heaps.end(),
                   [](const HeapTop& a, const HeapTop& b) { return a.gives_back_bytes_max > b.gives_back_bytes_max; });
  if (found.heaps.size() > heaps_max) found.heaps.resize(heaps_max);
  most_ = std::move(found);
}

HeapTops HeapTopFinder::take() {
  const std::uint64_t lowest = lowest_address();
  const bool is_first = std::find(first_offsets.begin(), first_offsets.end(), lowest % 0x1000) != first_offsets.end();
  std::string reason;
  if (has_early_blocks_)
    reason = "the trace lacks blocks that were made before it began";
  else if (lowest == unknown)
    return {};
  else if (is_refuted_ || !is_first)
    reason = "the places of the blocks are not those of glibc's heaps, or not from the start";
  if (!reason.empty()) most_ = {};
  most_.unknown_because = reason;
  return std::move(most_);
}

Reader find_origins(std::vector<TopBlock*> blocks, const std::string& path, unsigned threads) {
  std::sort(blocks.begin(), blocks.end(),
            [](const TopBlock* a, const TopBlock* b) { return a->block.tag < b->block.tag; });
  Reader reader = command::open_trace(path, {.addresses = false, .usable = false, .stacks = true, .threads = threads});
  const std::vector<BlockStart>& starts = reader.blocks();
  std::uint64_t next = 0;  // the event that is read next
  std::span<const Event> batch;
  for (TopBlock* const top : blocks) {
    const auto after = std::partition_point(starts.begin(), starts.end(),
                                            [&](const BlockStart& start) { return start.next_tag <= top->block.tag; });
    const std::uint64_t start = after == starts.begin() ? 0 : std::prev(after)->first_event;
    const auto find = [&] {
      return std::find_if(batch.begin(), batch.end(),
                          [&](const Event& event) { return event.makes_block() && event.tag == top->block.tag; });
    };
    if (start > next) {
      reader.seek(start);
      batch = {};
    }
    auto found = find();
    while (found == batch.end()) {
      batch = reader.read();
      if (batch.empty()) return reader;  // another file than before
      next = reader.first_event() + batch.size();
      found = find();
    }
    top->event = reader.first_event() + static_cast<std::uint64_t>(found - batch.begin()) + 1;
    top->time_ns = found->time_ns;
    top->stack = found->stack;
  }
  return reader;
}

}  // namespace cmt::analysis
