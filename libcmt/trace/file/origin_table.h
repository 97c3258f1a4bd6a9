#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/block_table.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/format/origins.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/trace/event_batch.h"

namespace cmt {

/// Keeps the origin of each live block while a trace is written or checked. An event costs 3 to 13 ns (doc/figures.md).
/// Memory: below 64 bytes a live block; twice that on top for blocks of calloc and its kin, with an alignment or a
/// usable size.
class OriginTable {
 public:
  /// With more live blocks the table gives up for good: origins of so many are never worth their bytes.
  explicit OriginTable(std::size_t limit) : limit_(limit) {}

  /// `old`: the live block that the event was given, tag 0 where none is known. `stack` instead of the event's.
  void add(const Event& event, const LiveBlock& old, StackId stack);
  /// The same for `count` events of a batch from `first` on, of which `other` is the first that is not in short form.
  void add_batch(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other,
                 bool has_stacks);

  void give_up();
  bool is_kept() const { return is_kept_; }

  /// The stream for these live blocks, by rising tag; empty where the table does not have them all, or where it would
  /// be too large. `number_of`: the number of a stack in the file.
  std::string put(std::span<const LiveBlock> live, std::uint64_t time_ns,
                  const std::function<std::uint64_t(StackId)>& number_of);

 private:
  /// How a block was made: its kind, and a thread below 2^25.
  struct Origin {
    Tag tag = 0;
    std::uint64_t time_ns = unknown;
    StackId stack = 0;
    std::uint32_t call = 0;
  };
  /// Further fields of few blocks.
  struct Extra {
    Tag tag = 0;
    std::uint64_t size = 0, count = 1, alignment = 0, usable = unknown;
    std::uint32_t thread = 0;
  };
  static constexpr std::uint32_t has_extra = 1 << 6;
  static constexpr unsigned thread_at = 7;
  static constexpr std::size_t bytes_max = std::size_t{1} << 27;

  void make(const Event& event, StackId stack);
  void make_short(Tag tag, Kind kind, std::uint32_t thread, std::uint64_t time_ns, StackId stack);
  void end(Tag tag);
  Event made_by(const Origin& origin, const LiveBlock& block);
  void list_runs(Tag tag, std::vector<format::OriginRun>& runs) const;

  std::size_t limit_;
  bool is_kept_ = true;
  BlockTable<Origin> origins_;
  BlockTable<Extra> extras_;
  heap::TouchedPages pages_{true};
};

}  // namespace cmt
