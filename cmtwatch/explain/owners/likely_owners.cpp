// Owners that simple marks suggest: the answer is likely, and no more.
#include <algorithm>
#include <iterator>
#include <utility>

#include "cmtwatch/explain/owners/readers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// The unclaimed ranges of which something holds.
template <class Predicate>
std::optional<OwnedMemory> likely_ranges(const Unclaimed& unclaimed, const char* owner, Predicate holds) {
  OwnedMemory owned{.owner = owner, .is_likely = true};
  std::copy_if(unclaimed.ranges().begin(), unclaimed.ranges().end(), std::back_inserter(owned.ranges), holds);
  return owned.ranges.empty() ? std::nullopt : std::optional(owned);
}

std::optional<OwnedMemory> with_pieces(OwnedMemory owned) {
  if (owned.ranges.empty()) return std::nullopt;
  owned.pieces = owned.ranges.size();
  return owned;
}

bool is_writable_code(const Unclaimed& unclaimed, const Range& range) {
  const process::Mapping* const mapping = unclaimed.memory().find(range.begin);
  return mapping != nullptr && mapping->permissions.starts_with("rwx");
}

}  // namespace

// Mark: a page of V8's heap is aligned to 256 KiB. Its header has its size at 0, and the begin and end of its objects
// at 24 and 32 (Node.js 18 and 20). A page with one large object is longer.
std::optional<OwnedMemory> find_v8_pages(const Unclaimed& unclaimed) {
  constexpr std::uint64_t v8_page_bytes = 256 << 10, objects_begin_max = 64 << 10;
  OwnedMemory v8{.owner = "V8's heap of JavaScript objects", .is_likely = true};
  unclaimed.each_head(v8_page_bytes, 40, [&](std::uint64_t address, std::span<const std::uint8_t> head) {
    const auto bytes = read_at<std::uint64_t>(head, 0);
    const auto begin = read_at<std::uint64_t>(head, 24), end = read_at<std::uint64_t>(head, 32);
    if (bytes < page_bytes || bytes > 64 * gib) return;
    if (begin <= address || begin > address + objects_begin_max || end <= begin || end > address + bytes) return;
    v8.ranges.push_back({address, address + bytes});
  });
  return with_pieces(std::move(v8));
}

// Mark: Ruby is mapped, and a page of 64 KiB, aligned, begins with the address of a structure elsewhere. One of its
// first words is the address of the page's first slot (Ruby 3.1).
std::optional<OwnedMemory> find_ruby_pages(const Unclaimed& unclaimed) {
  constexpr std::uint64_t ruby_page_bytes = 64 << 10, first_slot_max = 512;
  OwnedMemory ruby{.owner = "Ruby's heap of objects", .is_likely = true};
  if (!unclaimed.has_file("ruby")) return std::nullopt;
  unclaimed.each_head(ruby_page_bytes, 8, [&](std::uint64_t address, std::span<const std::uint8_t> head) {
    const auto page = read_at<std::uint64_t>(head, 0);
    std::uint64_t words[8];
    if (page % 8 != 0 || !unclaimed.memory().read(page, words, sizeof words)) return;
    if (std::none_of(std::begin(words), std::end(words),
                     [&](std::uint64_t word) { return address < word && word < address + first_slot_max; }))
      return;
    ruby.ranges.push_back({address, address + ruby_page_bytes});
  });
  return with_pieces(std::move(ruby));
}

// Mark: the JVM's library is mapped, and the memory is between 2 GiB, HeapBaseMinAddress, and 32 GiB. Compressed
// addresses reach no further. No other memory of a program has such addresses.
std::optional<OwnedMemory> find_java_heap(const Unclaimed& unclaimed) {
  if (!unclaimed.has_file("/libjvm.so")) return std::nullopt;
  return likely_ranges(unclaimed, "Java's heap",
                       [](const Range& range) { return range.begin >= 2 * gib && range.end <= 32 * gib; });
}

// Mark: the JVM's library is mapped, and the memory is both writable and executable.
std::optional<OwnedMemory> find_java_code(const Unclaimed& unclaimed) {
  if (!unclaimed.has_file("/libjvm.so")) return std::nullopt;
  return likely_ranges(unclaimed, "Java's compiled code",
                       [&](const Range& range) { return is_writable_code(unclaimed, range); });
}

// Mark: a mapping at 0xc000000000, where Go's heap begins, and the addresses up to the next place that Go tries. The
// kernel puts no mapping there by itself; mimalloc's begin at 2 TiB.
std::optional<OwnedMemory> find_go_heap(const Unclaimed& unclaimed) {
  constexpr std::uint64_t go_begin = 0xc000000000, go_end = go_begin + 1024 * gib;
  if (unclaimed.memory().find(go_begin) == nullptr) return std::nullopt;
  return likely_ranges(unclaimed, "Go's heap",
                       [](const Range& range) { return range.begin >= go_begin && range.end <= go_end; });
}

}  // namespace cmt::watch::explain
