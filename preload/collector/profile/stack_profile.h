/// The sums of a recording by call stack while it goes on: what was allocated, and what is live.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "libcmt/block_table.h"
#include "libcmt/trace/writer/event_batch.h"

namespace cmt::collector {

/// How many blocks of `bytes` a sample represents at a sampling interval (format-spec/cmt.md, "Sampled traces"). 1 at
/// the interval 0, at which each block is recorded.
double blocks_of_sample(std::uint64_t bytes, std::uint64_t interval);

/// Adds up the blocks of malloc by call stack; those of pools are parts of them. Sums of a sampled recording are
/// estimates without a bias: a block counts as allocated at the interval of that moment, and as live at that of now.
///
/// Memory: below 72 bytes a live block, 20 bytes a stack, and 4 bytes a node of the table of stacks.
class StackProfile {
 public:
  /// `interval`: the sampling interval at the start; 0: each block is recorded.
  explicit StackProfile(std::uint64_t interval) : interval_(interval) {}

  void add(const EventBatch& batch);

  struct Entry {
    StackId stack = 0;             ///< 0: not known
    std::array<double, 4> sums{};  ///< allocated blocks and bytes, live blocks and bytes
  };
  /// All stacks, in the order in which they allocated first.
  std::vector<Entry> entries() const;

  std::uint64_t interval() const { return interval_; }
  std::uint64_t raises() const { return raises_; }  ///< how often the interval has risen
  std::uint64_t blocks_made() const { return blocks_made_; }
  std::uint64_t blocks_live() const { return live_.size(); }

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t bytes = 0;
    std::uint32_t entry = 0;
  };
  struct Made {
    StackId stack = 0;
    double blocks = 0, bytes = 0;
  };

  void make(Tag tag, std::uint64_t bytes, StackId stack);

  std::uint64_t interval_, raises_ = 0, blocks_made_ = 0;
  BlockTable<Block> live_;
  std::vector<std::uint32_t> entry_of_stack_;  // plus 1; 0: the stack has allocated nothing
  std::vector<Made> made_;                     // by entry
};

/// The stack of an entry in which others are joined.
inline constexpr StackId joined_stacks = ~StackId{0};

/// Joins all but `most` entries in one. These have the smallest parts of the live and allocated bytes. Returns how many
/// it has joined.
std::size_t join_smallest(std::vector<StackProfile::Entry>& entries, std::size_t most);

}  // namespace cmt::collector
