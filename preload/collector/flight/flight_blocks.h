// A flight recorder keeps blocks of the stream, encoded and compressed as in any .cmt, in an unnamed file. The blocks
// form *groups*, each from one keyframe to the next. The oldest group is dropped as a whole:
//
//     dropped                       kept                                           being written
//     [group 1][group 2][group 3]   [group 4][group 5][group 6] ... [group 11]     [group 12]
//                               ^ the begin: keyframe, and LiveAtBegin
//
// A group ends after an eighth of the time or bytes that are to be kept. So the recorder keeps up to an eighth more
// time than requested, and up to an eighth fewer bytes than allowed. A keyframe lists the live blocks, at some 4 bytes
// and 100 ns each. So a group goes on until it has four times as many events as there are live blocks, or has taken 16
// times as long as a keyframe.
//
// A file is written from these groups without decoding events. It has
//
// - the allocations of the blocks that were live at the begin, and a mark;
//
// - the kept blocks, with another number of their first event in their headers;
//
// - new streams of call stacks, with only the stacks that the kept events need.
//
// If the live blocks have touched pages, the core stream names their blocks. This changes the tag given last, and the
// next event that is given a block may be encoded by the difference from that tag. So the core stream of this event's
// block is encoded again.
//
// Dropping a group costs decoding it without addresses. One block is decoded at a time, when another block has become
// full, because the encoder may run on a thread that gets little time (preload/collector/idle_worker.h).
//
// A block is put while the encoder is between two blocks, so putting it must not fail. If the disk is full, the block
// stays in memory. If that has its bound too, the oldest group is dropped, and the disk has its chunks for new blocks.
// There may be only one group then. So groups are an eighth of what there is room for, and not of the bytes allowed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "cmt/header.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/file/cmt_sink.h"
#include "libcmt/trace/writer/ledger.h"
#include "preload/collector/flight/chunk_file.h"
#include "preload/collector/flight/live_at_begin.h"
#include "preload/collector/flight/stack_column.h"

namespace cmt::collector {

/// How much a flight recorder keeps, within both bounds.
struct FlightLimits {
  std::uint64_t ns = 0;     ///< at least so long, if the bytes allow it; 0: no bound
  std::uint64_t bytes = 0;  ///< 0: this is no flight recorder, and nothing is dropped
  /// The most events of a block of the stream. The recorder has up to 140 bytes for each until the block is full.
  std::uint64_t block_events = 256 * 1024;
  /// The most bytes that are kept in memory while the disk is full.
  std::uint64_t memory_bytes = 16 << 20;

  bool is_set() const { return bytes != 0; }
};

/// The part of a recording that is kept at a moment.
struct FlightSpan {
  std::uint64_t dropped_events = 0;          ///< before the kept ones
  std::uint64_t events = 0;                  ///< kept
  std::uint64_t from_ns = 0;                 ///< when the first block kept began, since the start of the recording
  std::uint64_t to_ns = 0;                   ///< when the last one ended
  std::uint64_t live_events = 0, bytes = 0;  ///< of a file: events that make the blocks live at the begin; its size
};

/// The groups of kept blocks. Throws std::system_error if the file cannot be read.
class FlightBlocks {
 public:
  FlightBlocks(std::string folder, FlightLimits limits)
      : limits_(limits), chunks_(std::move(folder), limits.memory_bytes) {
    groups_.emplace_back();
  }

  /// Begins another group; the next block is its keyframe. `repairs`: of the recording so far.
  void begin_group(const Repairs& repairs);
  /// Puts a block, with the stacks of its events, into the newest group.
  void put(FullBlock& block, std::span<const EventStack> stacks);
  /// Counts events for the totals of the newest group.
  void count(const EventBatch& batch) { groups_.back().tally.count(batch); }
  /// Sets the time, since the start of the recording, up to which all events have come.
  void set_clock(std::uint64_t ns) { now_ns_ = ns; }

  /// Whether the newest group has its eighth.
  bool is_group_full() const;
  /// How long the newest group has gone on.
  std::uint64_t group_ns() const { return now_ns_ - groups_.back().begin_ns; }
  std::uint64_t group_events() const { return groups_.back().tally.totals().events; }
  /// How many events a block may have, so that a group has several blocks.
  std::size_t block_events_max() const;

  /// Writes a whole .cmt. `stacks`: the recording's table; null: it has none. `repairs`: of the recording so far.
  /// `goes_on`: the program has not ended.
  FlightSpan write(Output& output, Header header, const StackTable* stacks, const Repairs& repairs, bool truncated,
                   bool goes_on);

  FlightSpan span() const;

 private:
  struct Block {
    format::BlockHeader header;
    std::uint64_t offset = 0;                 // in the group's chain
    std::size_t bytes = 0, stacks_bytes = 0;  // of the body, and of the column of stacks after it
    std::size_t raw_stacks_bytes = 0;         // of the column before compression
  };
  struct Group {
    std::vector<Block> blocks;
    ChunkFile::Chain chain;
    std::uint64_t table_bytes = 0;  // of its keyframe's live blocks
    std::uint64_t begin_ns = 0;
    Repairs repairs_before;  // of the recording, when it began
    Tally tally;
  };

  std::uint64_t bytes_max() const;
  bool can_drop() const { return groups_.size() >= 2 && !groups_[1].blocks.empty(); }
  bool is_drop_due() const;
  void drop_some();
  void drop_oldest();
  void begin_drop();
  void drop_block();
  std::string section_of(const Group& group, const Block& block) const;
  std::vector<EventStack> stacks_of(const Group& group, const Block& block);
  void put_live(CmtSink& sink, Tally& tally);
  format::CoreState encode_after(const format::CoreState& state, const std::string& section, FullBlock& block);

  FlightLimits limits_;
  ChunkFile chunks_;
  std::deque<Group> groups_;  // the oldest first; the last one is being written
  LiveAtBegin live_;
  std::size_t dropping_ = 0;  // how many blocks of the oldest group have been folded into live_
  bool is_dropping_ = false;
  std::uint64_t now_ns_ = 0;
  std::uint64_t kept_bytes_ = 0;                // of all groups
  std::uint64_t events_ = 0, block_bytes_ = 0;  // of the whole recording
  format::Compressor compressor_{1};
  format::Decompressor decompressor_;
};

}  // namespace cmt::collector
