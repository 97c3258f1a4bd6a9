// The rules of glibc's malloc.c for 64-bit machines.
#include "analysis/places/mmap_threshold.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "analysis/stacks/function_names/short_name.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::analysis {
namespace {

constexpr std::uint64_t chunk_alignment_of_glibc = 16, size_word = 8, smallest_chunk = 32, page = 4096;

/// Parameters of mallopt that end the raising.
constexpr std::array<std::string_view, 4> ending{"M_MMAP_THRESHOLD=", "M_TRIM_THRESHOLD=", "M_TOP_PAD=", "M_MMAP_MAX="};

std::uint64_t chunk_for(std::uint64_t bytes) {
  return (bytes + size_word + chunk_alignment_of_glibc - 1) & ~(chunk_alignment_of_glibc - 1);
}

RaiseRow row_of(const TopBlock& block, std::uint64_t event, std::uint64_t time_ns) {
  return {.site = "an unknown call",
          .bytes = block.block.size,
          .event = event,
          .time_ns = time_ns == unknown ? std::nullopt : std::optional(time_ns)};
}

void name_site(std::optional<RaiseRow>& row, const TopBlock& block) {
  if (!row || block.functions.empty()) return;
  row->site = text::to_line(short_name(block.functions[0]));
  if (block.functions.size() > 1) row->site += ", called by " + text::to_line(short_name(block.functions[1]));
}

}  // namespace

std::uint64_t chunk_of_request(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t chunk = chunk_for(bytes);
  return alignment > chunk_alignment_of_glibc ? chunk_for(chunk + alignment + smallest_chunk) : chunk;
}

std::uint64_t mapping_of_request(std::uint64_t bytes, std::uint64_t alignment) {
  return (chunk_of_request(bytes, alignment) + size_word + page - 1) & ~(page - 1);
}

bool begins_mapping(std::uint64_t address, std::uint64_t alignment) {
  return address % page == std::max(chunk_alignment_of_glibc, alignment) % page;
}

std::string raise_text(const RaiseRow& raise) {
  return output::bytes_text(raise.bytes) + " of " + raise.site + ", freed " +
         (raise.time_ns ? output::time_text(static_cast<double>(*raise.time_ns)) + " after the recording began"
                        : "by event " + output::with_commas(raise.event) + " of the trace");
}

void MmapThreshold::name_sites() {
  name_site(first, first_block);
  name_site(last, last_block);
}

void ThresholdFollower::begin_block(const Event& event, const HeapTopFinder& heaps) {
  const bool moves = std::exchange(moves_mapping_, false);
  const std::uint64_t chunk = chunk_of_request(event.bytes(), event.alignment);
  if (chunk < mmap_threshold_first && !moves) return;
  const bool is_mapped = begins_mapping(event.address, event.alignment) && !heaps.is_in_heap(event.address);
  if (is_mapped) {
    mapped_below_ += !moves && chunk < found_.bytes && !found_.is_set;
    // An alignment above 16 leaves a gap before the chunk, which the chunk's size does not have.
    const std::uint64_t gap = (event.address - chunk_alignment_of_glibc) % page;
    blocks_[event.address] = {mapping_of_request(event.bytes(), event.alignment) - gap, true};
  } else if (chunk < found_.bytes && !found_.is_set) {
    ++found_.heap_blocks;
    found_.heap_bytes += event.bytes();
    heap_bytes_live_ += event.bytes();
    found_.heap_bytes_peak = std::max(found_.heap_bytes_peak, heap_bytes_live_);
    blocks_[event.address] = {chunk, false};
  }
}

// A realloc that moves a block leaves the threshold alone.
void ThresholdFollower::end_block(const Event& event, const heap::PlacedBlock& block, std::uint64_t number) {
  const auto known = blocks_.find(event.old_address);
  if (known == blocks_.end()) return;
  const Block ended = known->second;
  blocks_.erase(known);
  if (!ended.is_mapped) heap_bytes_live_ -= block.size;
  moves_mapping_ = ended.is_mapped && event.makes_block();
  if (!ended.is_mapped || moves_mapping_ || found_.is_set) return;
  if (ended.chunk <= found_.bytes || ended.chunk > mmap_threshold_max) return;
  found_.bytes = ended.chunk;
  ++found_.raises;
  found_.last_block = {.block = block};
  found_.last = row_of(found_.last_block, number, event.time_ns);
  if (found_.raises > 1) return;
  found_.first_block = found_.last_block;
  found_.first = found_.last;
}

void ThresholdFollower::set(const Event& mallopt) {
  found_.is_set |=
      std::any_of(ending.begin(), ending.end(), [&](std::string_view each) { return mallopt.label.starts_with(each); });
}

MmapThreshold ThresholdFollower::take(const std::string& unknown_because) {
  std::string reason = unknown_because;
  if (reason.empty() && mapped_below_ > found_.heap_blocks)
    reason = "blocks below a threshold that frees would have raised have mappings of their own, so it was set";
  if (!reason.empty()) found_ = {};
  found_.unknown_because = reason;
  return std::move(found_);
}

}  // namespace cmt::analysis
