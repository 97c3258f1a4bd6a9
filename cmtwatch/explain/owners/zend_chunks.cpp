// Finds the chunks of PHP's allocator (Zend/zend_alloc.c): 2 MiB each, aligned, in a ring. The first page of a chunk is
// its header; the heap itself is part of the first chunk's header. Larger blocks have mappings of their own, which the
// heap lists. Offsets in a chunk, from PHP 7.0 on:
//
//     0   heap: address of the first chunk + 64
//     8   next chunk, 16 previous chunk
//     24  free pages, at most 511
//
// Offsets in a heap: 16 bytes in use. The fields after its lists of free blocks move from version to version. The
// address of the first chunk marks them. Before it is the list of large blocks, after it the list of chunks that are
// kept for later.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "cmtwatch/explain/owners/readers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t zend_chunk_bytes = 2 << 20, heap_offset = 64, pages_of_chunk = 512;
constexpr std::size_t chunk_header_bytes = 28, large_blocks_max = 65536, lists_end = (16 + 16 + 30 * 8) / 8;

struct Chunk {
  std::uint64_t heap = 0, next = 0, previous = 0;
  std::uint32_t free_pages = 0;
};
using Chunks = std::map<std::uint64_t, Chunk>;  // by address

struct ZendHeap {
  std::uint64_t live_bytes = 0, large_blocks = 0, kept_chunks = 0;
};

Chunks read_candidates(const Unclaimed& unclaimed) {
  Chunks chunks;
  unclaimed.each_head(zend_chunk_bytes, chunk_header_bytes,
                      [&](std::uint64_t address, std::span<const std::uint8_t> head) {
                        const Chunk chunk{.heap = read_at<std::uint64_t>(head, 0),
                                          .next = read_at<std::uint64_t>(head, 8),
                                          .previous = read_at<std::uint64_t>(head, 16),
                                          .free_pages = read_at<std::uint32_t>(head, 24)};
                        if (chunk.heap % zend_chunk_bytes != heap_offset || chunk.next % zend_chunk_bytes != 0) return;
                        if (chunk.free_pages >= pages_of_chunk) return;
                        chunks.emplace(address, chunk);
                      });
  return chunks;
}

bool is_in_ring(const Chunks& chunks, std::uint64_t address, const Chunk& chunk) {
  const auto next = chunks.find(chunk.next);
  return next != chunks.end() && next->second.previous == address && next->second.heap == chunk.heap &&
         chunks.contains(chunk.heap - heap_offset);
}

std::optional<ZendHeap> read_heap(AddressSpace& memory, std::uint64_t address) {
  std::array<std::uint64_t, 64> words{};
  if (!memory.read(address, words.data(), sizeof words)) return std::nullopt;
  const auto first_chunk = std::find(words.begin() + lists_end, words.end() - 1, address - heap_offset);
  if (first_chunk == words.end() - 1) return std::nullopt;
  return ZendHeap{.live_bytes = words[2], .large_blocks = first_chunk[-1], .kept_chunks = first_chunk[1]};
}

// Chunks that the heap keeps for later have left the ring.
std::uint64_t add_kept_chunks(const ZendHeap& heap, const Chunks& chunks, std::set<std::uint64_t>& found) {
  std::uint64_t kept = 0;
  for (auto chunk = chunks.find(heap.kept_chunks); chunk != chunks.end() && found.insert(chunk->first).second;
       chunk = chunks.find(chunk->second.next)) {
    ++kept;
  }
  return kept;
}

// An element of the list: address, bytes, next.
void add_large_blocks(AddressSpace& memory, const ZendHeap& heap, OwnedMemory& php) {
  std::uint64_t at = heap.large_blocks;
  while (at != 0 && php.ranges.size() < large_blocks_max) {  // of all heaps: a torn list may go in a circle
    const auto begin = memory.read<std::uint64_t>(at), bytes = memory.read<std::uint64_t>(at + 8);
    const auto next = memory.read<std::uint64_t>(at + 16);
    if (!begin || !bytes || !next || *begin % zend_chunk_bytes != 0 || *bytes > std::uint64_t{1} << 47) return;
    php.ranges.push_back({*begin, *begin + *bytes});
    at = *next;
  }
}

}  // namespace

std::optional<OwnedMemory> read_zend_chunks(const Unclaimed& unclaimed) {
  const Chunks chunks = read_candidates(unclaimed);
  std::set<std::uint64_t> found, heaps;
  for (const auto& [address, chunk] : chunks) {
    if (!is_in_ring(chunks, address, chunk)) continue;
    found.insert(address);
    heaps.insert(chunk.heap);
  }
  if (found.empty()) return std::nullopt;
  OwnedMemory php{.owner = "PHP's Zend allocator"};
  std::uint64_t live_bytes = 0, kept = 0;
  bool all_heaps_known = true;
  for (const std::uint64_t address : heaps) {
    const auto heap = read_heap(unclaimed.memory(), address);
    all_heaps_known = all_heaps_known && heap;
    if (!heap) continue;
    live_bytes += heap->live_bytes;
    kept += add_kept_chunks(*heap, chunks, found);
    add_large_blocks(unclaimed.memory(), *heap, php);
  }
  for (const std::uint64_t address : found) php.ranges.push_back({address, address + zend_chunk_bytes});
  if (all_heaps_known) php.live_bytes = live_bytes;
  php.pieces = found.size();
  if (kept != 0) php.remark = std::to_string(kept) + " of the chunks are kept for later";
  return php;
}

}  // namespace cmt::watch::explain
