// Makes the events about pages of large blocks, block by block as they are allocated, resized and ended.

#include "preload/collector/pages/touched_blocks.h"

#include <algorithm>
#include <cassert>

#include "preload/protocol.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t page_size = block_page_bytes, huge_size = block_page_bytes_huge;
constexpr std::uint64_t huge_pages = huge_size / page_size;

/// The number of pages that hold `bytes` from an address on.
std::uint64_t pages_of(std::uint64_t address, std::uint64_t bytes) {
  return (address % page_size + bytes + page_size - 1) / page_size;
}

std::vector<PageRun> runs_below(const PagesReport& report, std::uint64_t end) {
  std::vector<PageRun> runs;
  for (PageRun run : report.runs) {
    if (run.first >= end) break;
    run.count = std::min(run.count, end - run.first);
    if (run.count != 0) runs.push_back(run);
  }
  return runs;
}

}  // namespace

std::uint64_t TouchedBlocks::Block::pages() const { return pages_of(address, bytes); }

TouchedBlocks::Block* TouchedBlocks::find(const format::LiveBlock& block) {
  events_.clear();
  if (!is_large(block.size)) return nullptr;
  const auto found = blocks_.find(block.tag);
  return found != blocks_.end() ? &found->second : nullptr;
}

/// Appends an event about a run. Its unit is huge pages if the run begins and ends at their bounds, or at the block's
/// ends.
void TouchedBlocks::append(Tag tag, const Block& block, const PageRun& run, Kind kind, std::uint32_t thread) {
  assert(run.count != 0 && run.first < block.pages() && run.end() <= block.pages());
  const std::uint64_t begin = block.address / page_size, place = block.address % page_size;
  Event event{.kind = kind, .thread = thread};
  event.size = run.first == 0 ? 0 : run.first * page_size - place;
  event.alignment = page_size;
  event.count = run.end() >= block.pages() ? 0 : run.count;
  event.old_tag = tag;
  event.old_address = block.address;
  const bool begins = run.first == 0 || (begin + run.first) % huge_pages == 0;
  const bool ends = run.end() >= block.pages() || (begin + run.end()) % huge_pages == 0;
  if (run.is_huge && begins && ends) {
    event.alignment = huge_size;
    if (event.count != 0) event.count = (begin + run.end() - 1) / huge_pages - (begin + run.first) / huge_pages + 1;
  }
  events_.push_back(event);
}

/// Appends events about the pages of the runs that are not known. Unsure pages may become sure later, and stay unknown,
/// unless `keep_unsure`.
void TouchedBlocks::append_new(Tag tag, Block& block, const std::vector<PageRun>& runs, std::uint32_t thread,
                               bool keep_unsure) {
  const auto append_run = [&](const PageRun& run) {
    append(tag, block, run, block.has_baseline && !run.is_unsure ? Kind::touch : Kind::resident, thread);
  };
  if (keep_unsure) return block.known.add(runs, append_run);
  std::vector<PageRun> sure;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(sure), [](const PageRun& run) { return !run.is_unsure; });
  block.known.add(sure, append_run);
}

void TouchedBlocks::append_unknown(Tag tag, Block& block, std::uint32_t thread) {
  block.known.for_each_missing(block.pages(),
                               [&](const PageRun& run) { append(tag, block, run, Kind::resident, thread); });
  block.known.add({{0, block.pages()}});
}

TouchedBlocks::Events TouchedBlocks::add_block(const Event& allocation, std::uint64_t stamp,
                                               const PagesReport& report) {
  events_.clear();
  if (!is_large(allocation.bytes()) || allocation.tag == 0) return events_;
  Block block{allocation.address, allocation.bytes(), stamp, allocation.thread, report.has(block_is_asked)};
  block.known.add(runs_below(report, block.pages()),
                  [&](const PageRun& run) { append(allocation.tag, block, run, Kind::resident, block.thread); });
  if (!report.is_there) append_unknown(allocation.tag, block, block.thread);
  insert(allocation.tag, std::move(block));
  return events_;
}

TouchedBlocks::Events TouchedBlocks::end_block(const format::LiveBlock& ended, std::uint32_t thread,
                                               const PagesReport& report) {
  if (Block* const block = find(ended)) {
    if (report.has(block_is_asked))
      append_new(ended.tag, *block, runs_below(report, block->pages()), thread, true);
    else
      append_unknown(ended.tag, *block, thread);
    erase(ended.tag);
  }
  return events_;
}

TouchedBlocks::Events TouchedBlocks::begin_realloc(const format::LiveBlock& given, std::uint32_t thread,
                                                   const PagesReport& report) {
  if (Block* const block = find(given)) {
    block->is_in_realloc = true;
    block->was_asked = report.has(block_is_asked);
    if (block->was_asked) append_new(given.tag, *block, runs_below(report, block->pages()), thread, true);
  }
  return events_;
}

TouchedBlocks::Events TouchedBlocks::replace_block(const format::LiveBlock& old, std::uint32_t thread) {
  Block* const block = find(old);
  if (block != nullptr && !block->was_asked) append_unknown(old.tag, *block, thread);
  return events_;
}

TouchedBlocks::Events TouchedBlocks::resize_block(const format::LiveBlock& old, const Event& realloc,
                                                  std::uint64_t stamp, const PagesReport& report) {
  Block* const given = find(old);
  if (realloc.tag == 0) {
    if (given != nullptr) given->is_in_realloc = false;  // it was refused
    if (given != nullptr && realloc.bytes() == 0) erase(old.tag);
    return events_;
  }
  PagesReport all = report;
  if (report.has(block_is_kept) && (given == nullptr || !given->has_baseline))
    all.flags &= ~std::uint64_t{block_is_asked};
  if (given != nullptr && report.has(block_is_kept)) {
    PageSet known = std::move(given->known);
    known.add(report.runs);
    all.runs.clear();
    for (const PageSet::Run& run : known.runs()) all.runs.push_back({run.first, run.end - run.first});
  }
  if (given != nullptr) erase(old.tag);
  return add_block(realloc, stamp, all);
}

TouchedBlocks::Events TouchedBlocks::add_report(const format::LiveBlock& reported, std::uint32_t thread,
                                                const PagesReport& report) {
  Block* const block = find(reported);
  if (block == nullptr || block->is_in_realloc || (report.since != 0 && block->stamp >= report.since)) return events_;
  if (report.since != 0) thread = block->thread;  // the page watcher has looked
  append_new(reported.tag, *block, runs_below(report, block->pages()), thread, false);
  if (report.has(block_is_last)) append_unknown(reported.tag, *block, thread);
  const bool is_whole = report.has(block_is_whole) && report.bytes == block->bytes;
  if (is_whole && !report.has(block_has_more)) block->has_baseline = true;
  return events_;
}

void TouchedBlocks::insert(Tag tag, Block block) {
  if (has_places_) places_[block.address] = tag;
  blocks_.insert_or_assign(tag, std::move(block));
}

void TouchedBlocks::erase(Tag tag) {
  const auto ended = blocks_.find(tag);
  if (ended == blocks_.end()) return;
  if (has_places_) places_.erase(ended->second.address);
  blocks_.erase(ended);
}

void TouchedBlocks::index_places() {
  if (has_places_) return;
  has_places_ = true;
  for (const auto& [tag, block] : blocks_) places_[block.address] = tag;
}

/// Removes the pages between two addresses, of which the block may have a part only.
bool TouchedBlocks::Block::remove(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t base = address / page_size;
  return known.remove(std::max(begin / page_size, base) - base, (end + page_size - 1) / page_size - base);
}

TouchedBlocks::Events TouchedBlocks::discard(std::uint64_t address, std::uint64_t bytes, std::uint32_t thread,
                                             std::uint64_t stamp) {
  events_.clear();
  index_places();
  const std::uint64_t end = address + bytes;
  auto place = places_.lower_bound(end);
  while (place != places_.begin()) {
    --place;
    Block& block = blocks_.at(place->second);
    const std::uint64_t block_end = block.address + block.bytes;
    if (block_end <= address) break;
    block.stamp = stamp;
    if (!block.remove(address, end)) continue;
    const std::uint64_t first = std::max(address, block.address);
    events_.push_back({.kind = Kind::discard,
                       .thread = thread,
                       .size = first - block.address,
                       .count = std::min(end, block_end) - first,
                       .old_tag = place->second,
                       .old_address = block.address});
  }
  return events_;
}

void TouchedBlocks::restore(const Event& event) {
  events_.clear();
  if (event.ends_block()) erase(event.old_tag);
  if (event.tag != 0 && is_large(event.bytes()))
    insert(event.tag, Block{event.address, event.bytes(), 0, event.thread, false});
  const auto found = is_about_pages(event.kind) ? blocks_.find(event.old_tag) : blocks_.end();
  if (found == blocks_.end()) return;
  Block& block = found->second;
  if (event.kind == Kind::discard) {
    block.remove(block.address + event.size, block.address + event.size + event.count);
    return;
  }
  const std::uint64_t first = (block.address % page_size + event.size) / page_size;
  const std::uint64_t pages = block.pages();
  std::uint64_t end = pages;
  if (event.count != 0) {
    const std::uint64_t begin = block.address / page_size + first, unit = event.alignment / page_size;
    end = unit <= 1 ? first + event.count : (begin / unit + event.count) * unit - block.address / page_size;
  }
  if (first < std::min(end, pages)) block.known.add({{first, std::min(end, pages) - first}});
}

}  // namespace cmt::collector
