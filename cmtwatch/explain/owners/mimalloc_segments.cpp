// Finds the segments of mimalloc 2: 32 MiB each, aligned. A segment begins with its header: fields that differ by
// version, then a table with an entry for each slice of 64 KiB. Slices form spans; each span is one page of blocks of
// one size, or free. The first span is the header's own. A block above 16 MiB has a segment of its own, which may be
// longer.
//
//     ... | slices of the segment | slices of the header | kind | entries of the table | thread | table
//
// The table's place and the size of its entries are searched for. The proof is the chain of spans: each
// one's number of slices leads to the next, and the last ends exactly at the end of the segment. An entry:
//
//     0   slices of this span; 4: offset back to the span's first entry
//     up to 2.1.2:  24 blocks in use (4 bytes), 28 bytes of a block (4), 40 list of blocks that other threads freed
//     later:        32 blocks in use (2 bytes), 40 bytes of a block (8), 48 address of the first block, 56 that list
//
// A block that another thread freed counts as in use until its owner collects it. So the list is walked. The first such
// block of a page is in a list of the owner's heap instead. As long as it is there, the lowest two bits of the page's
// list are 2, and the block is counted without a search. Builds that encode their lists have entries of 16 bytes more,
// with keys before the list. There such blocks count as live.
//
// Source: mimalloc 2.0.9, 2.1.2, 2.1.7, 2.2.7 and 2.4.1, each of which was run, and the 2.1.2 in CPython 3.13. Version
// 2.0.6 is not recognised; mimalloc 3 has no segments.
#include <algorithm>
#include <string>

#include "cmtwatch/explain/owners/readers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t segment_bytes = 32 << 20, slice_bytes = 64 << 10, slices_of_segment = 512,
                        header_slices_max = 16, segment_slices_max = std::uint64_t{1} << 31;
constexpr std::size_t fields_begin = 48, fields_end = 1024, fields_bytes = 40, entry_bytes_of_later = 96,
                      entry_bytes_max = 112;

using Bytes = std::span<const std::uint8_t>;

struct Header {
  std::uint64_t slices = 0, entries = 0, header_slices = 0;
  std::size_t table = 0;  // its offset
};

std::optional<Header> parse_header(Bytes head, std::size_t fields) {
  const Header header{.slices = read_at<std::uint64_t>(head, fields),
                      .entries = read_at<std::uint64_t>(head, fields + 24),
                      .header_slices = read_at<std::uint64_t>(head, fields + 8),
                      .table = fields + fields_bytes};
  const bool is_huge = read_at<std::uint32_t>(head, fields + 16) == 1;
  if (read_at<std::uint32_t>(head, fields + 16) > 1) return std::nullopt;
  if (header.header_slices == 0 || header.header_slices > header_slices_max) return std::nullopt;
  if (header.slices <= header.header_slices || header.slices > segment_slices_max) return std::nullopt;
  if (!is_huge && header.slices != slices_of_segment) return std::nullopt;
  if (header.entries != std::min(header.slices, slices_of_segment)) return std::nullopt;
  if (read_at<std::uint32_t>(head, header.table) != header.header_slices) return std::nullopt;
  if (read_at<std::uint32_t>(head, header.table + 4) != 0) return std::nullopt;
  return header;
}

/// The first entry of each span, or none if the spans do not cover the segment exactly.
std::vector<std::size_t> chain_spans(Bytes table, const Header& header, std::size_t entry_bytes) {
  std::vector<std::size_t> spans;
  std::uint64_t slice = 0;
  while (slice < header.entries) {
    const std::size_t entry = slice * entry_bytes;
    const std::uint64_t slices = read_at<std::uint32_t>(table, entry);
    if (slices == 0 || slices > header.slices - slice || read_at<std::uint32_t>(table, entry + 4) != 0) return {};
    spans.push_back(entry);
    slice += slices;
  }
  return slice == header.slices && spans.size() > 1 ? spans : std::vector<std::size_t>{};
}

struct Segment {
  std::uint64_t bytes = 0, live_bytes = 0, live_blocks = 0, pending_blocks = 0;
};

struct Span {
  std::uint64_t bytes = 0, block_bytes = 0, used = 0;
  std::uint64_t freed_by_others = 0;  // first block of the list, and the state of the page
};

Span parse_span(Bytes entry, Range segment) {
  Span span{.bytes = std::uint64_t{read_at<std::uint32_t>(entry, 0)} * slice_bytes};
  if (entry.size() >= entry_bytes_of_later && segment.contains(read_at<std::uint64_t>(entry, 48))) {
    span.used = read_at<std::uint16_t>(entry, 32);
    span.block_bytes = read_at<std::uint64_t>(entry, 40);
    if (entry.size() == entry_bytes_of_later) span.freed_by_others = read_at<std::uint64_t>(entry, 56);
  } else {
    span.used = read_at<std::uint32_t>(entry, 24);
    span.block_bytes = read_at<std::uint32_t>(entry, 28);
    if (entry.size() < entry_bytes_of_later) span.freed_by_others = read_at<std::uint64_t>(entry, 40);
  }
  return span;
}

std::uint64_t count_list(AddressSpace& memory, std::uint64_t block, Range segment, std::uint64_t blocks_max) {
  std::uint64_t count = 0;
  for (block &= ~std::uint64_t{3}; segment.contains(block) && count < blocks_max; ++count) {
    const auto next = memory.read<std::uint64_t>(block);
    if (!next) return count + 1;
    block = *next;
  }
  return count;
}

void add_span(AddressSpace& memory, const Span& span, Range segment, Segment& sum) {
  if (span.block_bytes == 0) return;  // it is free
  // A look that races with the program may see words of two moments.
  const std::uint64_t used = std::min(span.used, std::max<std::uint64_t>(1, span.bytes / span.block_bytes));
  const std::uint64_t elsewhere = (span.freed_by_others & 3) == 2 ? 1 : 0;
  const std::uint64_t pending = std::min(used, elsewhere + count_list(memory, span.freed_by_others, segment, used));
  sum.live_bytes += std::min(span.bytes, (used - pending) * span.block_bytes);
  sum.live_blocks += used - pending;
  sum.pending_blocks += pending;
}

std::optional<Segment> read_segment(AddressSpace& memory, std::uint64_t address, const Header& header) {
  std::vector<std::uint8_t> pages(page_end(header.table + header.entries * entry_bytes_max));
  if (!memory.read_pages({address, address + pages.size()}, pages.data())) return std::nullopt;
  for (const std::size_t entry_bytes : {std::size_t{80}, std::size_t{96}, entry_bytes_max}) {
    const Bytes entries = Bytes(pages).subspan(header.table, header.entries * entry_bytes);
    const auto spans = chain_spans(entries, header, entry_bytes);
    if (spans.empty()) continue;
    Segment sum{.bytes = header.slices * slice_bytes};
    const Range segment{address, address + sum.bytes};
    for (std::size_t i = 1; i < spans.size(); ++i)
      add_span(memory, parse_span(entries.subspan(spans[i], entry_bytes), segment), segment, sum);
    return sum;
  }
  return std::nullopt;
}

}  // namespace

std::optional<OwnedMemory> read_mimalloc_segments(const Unclaimed& unclaimed) {
  OwnedMemory mimalloc{.owner = "mimalloc", .live_bytes = 0, .pieces = 0};
  std::uint64_t blocks = 0, pending = 0;
  unclaimed.each_head(segment_bytes, fields_end, [&](std::uint64_t address, Bytes head) {
    for (std::size_t fields = fields_begin; fields + fields_bytes <= fields_end; fields += 8) {
      const auto header = parse_header(head, fields);
      const auto segment = header ? read_segment(unclaimed.memory(), address, *header) : std::nullopt;
      if (!segment) continue;
      mimalloc.ranges.push_back({address, address + segment->bytes});
      *mimalloc.live_bytes += segment->live_bytes;
      ++*mimalloc.pieces;
      blocks += segment->live_blocks;
      pending += segment->pending_blocks;
      return;
    }
  });
  if (mimalloc.ranges.empty()) return std::nullopt;
  mimalloc.remark = std::to_string(blocks) + " blocks are live";
  if (pending != 0)
    mimalloc.remark += ", " + std::to_string(pending) + " wait for the threads that own them, freed by others";
  return mimalloc;
}

}  // namespace cmt::watch::explain
