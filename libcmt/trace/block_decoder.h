#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libcmt/format/addresses.h"
#include "libcmt/format/columns.h"
#include "libcmt/format/core.h"
#include "libcmt/trace/block_bytes.h"

namespace cmt {

/// The events of one block after the other. Throws format::WireError as BlockBytes does.
class BlockDecoder {
 public:
  explicit BlockDecoder(const ReadOptions& wanted) : wanted_(wanted) {}

  /// `fresh`: blocks may be missing before this one, which is a keyframe if addresses are wanted.
  void start(BlockBytes&& bytes, bool fresh);

  /// Leaves the block.
  void stop();

  /// Events so far, of all blocks, of kinds that this version does not know.
  std::uint64_t unknown_kinds() const { return unknown_kinds_ + (core_ ? core_->unknown_kinds() : 0); }

  /// The next events, valid until the next call; empty at the block's end, where every stream has to end.
  std::span<const Event> next();

 private:
  static constexpr std::size_t batch_events = 256;  // 24 KB, so that a batch stays in the first cache

  template <typename Decoder>
  void fill(format::StreamId id, Decoder& decoder, std::span<Event> events);
  void check_ends();

  const ReadOptions& wanted_;
  BlockBytes bytes_;
  std::vector<Event> batch_ = std::vector<Event>(batch_events);
  std::optional<format::CoreDecoder> core_;
  std::unique_ptr<format::AddressDecoder> addresses_;
  format::TimeDecoder times_;
  format::UsableDecoder usable_;
  std::uint64_t unknown_kinds_ = 0;  // in blocks that are done
};

}  // namespace cmt
