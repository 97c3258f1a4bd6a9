/// Counts the bytes of blocks that a program asked for and never touched.
#pragma once

#include <tsl/robin_set.h>

#include <cstdint>

#include "cmt/event.h"
#include "libcmt/format/origins.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/number_hash.h"

namespace cmt::analysis {

/// Counts the bytes of live blocks that were asked for, but not touched so far. Resident pages count as touched, since
/// nobody knows. A block is unknown if events report all of it as resident, and none of it as touched before. Memory:
/// the same as TouchedPages, and 16 bytes a touched block.
class UntouchedBytes {
 public:
  /// `touched_min`: the least size of blocks whose touched pages were recorded; 0: none were.
  explicit UntouchedBytes(std::uint64_t touched_min) : touched_min_(touched_min) {}

  /// Adds an event that reports pages of a live block of this size.
  void touch(const Event& run, std::uint64_t size) {
    if (!is_watched(size)) return;
    bool is_new = false;  // bytes that are known keep their run
    pages_.add(run, heap::bytes_of(run, run.old_address, size), size,
               [&](std::uint64_t, std::uint64_t, bool) { is_new = true; });
    if (is_new && run.kind == Kind::touch) touched_.insert(run.old_tag);
  }

  /// Adds a run of bytes of a live block of this size.
  void touch(const format::OriginRun& run, std::uint64_t size) {
    if (!is_watched(size)) return;
    pages_.add(run.tag, run.begin, {run.end, run.kind, run.page_size}, size);
    if (run.kind == Kind::touch) touched_.insert(run.tag);
  }

  /// Whether it is known which bytes of a live block were touched.
  bool knows(Tag tag, std::uint64_t size) const {
    return is_watched(size) && (touched_.contains(tag) || pages_.find(tag) == nullptr || of_block(tag, size) != 0);
  }

  /// Returns the untouched bytes of a live block; 0 if nothing is known.
  std::uint64_t of_block(Tag tag, std::uint64_t size) const {
    std::uint64_t bytes = 0;
    if (is_watched(size))
      pages_.for_each_gap(tag, size, [&](std::uint64_t begin, std::uint64_t end) { bytes += end - begin; });
    return bytes;
  }

  /// Returns the untouched bytes of a block that ends, and forgets its pages.
  std::uint64_t end_block(Tag tag, std::uint64_t size) {
    const std::uint64_t bytes = of_block(tag, size);
    if (is_watched(size)) {
      pages_.end_block(tag);
      touched_.erase(tag);
    }
    return bytes;
  }

 private:
  bool is_watched(std::uint64_t size) const { return touched_min_ != 0 && size >= touched_min_; }

  std::uint64_t touched_min_;
  heap::TouchedPages pages_;
  tsl::robin_set<Tag, NumberHash> touched_;  // live blocks with bytes that an event reports as touched
};

}  // namespace cmt::analysis
