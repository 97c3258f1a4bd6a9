/// Decides which pages a replay writes where the trace does not say it, and counts the bytes that are unknown or
/// unwritten.
#pragma once

#include <cstdint>
#include <memory>

#include <tsl/robin_map.h>

#include "cmt/event.h"
#include "cmtreplay/plan/written_pages/page_uses.h"

namespace cmt::replay {

/// Decides which `resident` pages a replay writes. It writes as large a share of them as the program writes of blocks
/// which are alike (PageUses), beginning with the first pages of each run. If no such block is known, it writes all.
/// The first page of a block is always written.
///
/// Counts two sums over live blocks: the bytes that are not written so far, and those of which the trace does not say
/// it. The replay writes a part of the second sum: the program's peak may be lower by that part, and higher by the
/// rest. The sum has whole pages only, without the first one of a block:
///
/// - all of a block below touched_min bytes;
///
/// - the resident ones of a larger block, if fewer than alike_min blocks are known that are alike. They may be reported
///   late, mostly at the block's end.
class AssumedWrites {
 public:
  static constexpr std::uint64_t alike_min = 8;

  explicit AssumedWrites(std::shared_ptr<const PageUses> uses) : uses_(std::move(uses)) {}

  /// Counts the next event of the trace. Returns it as it is to be replayed: a `resident` with only those pages that
  /// are to be written, perhaps none. Valid until the next call.
  const Event& plan(const Event& recorded);
  /// To be called after an event with which more bytes are live than ever before.
  void note_peak();

  /// In live blocks of at least touched_min bytes.
  std::uint64_t unwritten_bytes() const { return unwritten_; }
  std::uint64_t unknown_bytes_at_peak() const { return unknown_at_peak_; }
  /// The part of the unknown bytes at the peak that the replay does not write.
  std::uint64_t left_out_bytes_at_peak() const { return left_out_at_peak_; }

 private:
  struct Block {
    std::uint64_t size = 0, unwritten = 0, unknown = 0, left_out = 0;
    std::uint64_t made_by = 0;  ///< the event, counted from 1
    Kind kind{};
  };

  const Event& plan_resident(const Event& recorded, Block& block);
  std::uint64_t add_unknown(Block& block, const Event& pages);
  void add_left_out(Block& block, std::uint64_t bytes);
  void count_pages(const Event& event, Block& block);
  void add_block(const Event& event);
  void end_block(Tag tag);

  std::shared_ptr<const PageUses> uses_;
  tsl::robin_map<Tag, Block> blocks_;  ///< the live ones of at least touched_min bytes, or of two pages
  Event changed_;                      ///< what plan() has returned in place of the recorded event
  double owed_ = 0;                    ///< bytes that were to be written and are less than a page
  std::uint64_t events_ = 0, peak_event_ = 0;
  std::uint64_t unwritten_ = 0, unknown_ = 0, unknown_at_peak_ = 0;
  std::uint64_t left_out_ = 0, left_out_at_peak_ = 0;
};

}  // namespace cmt::replay
