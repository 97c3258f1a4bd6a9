/// Decodes the blocks of a .cmt: first the bytes of a block, which any thread can do, then its events, one block after
/// the other.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/format/addresses.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/columns.h"
#include "libcmt/format/core.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/stacks/stack_streams.h"
#include "libcmt/format/zstd.h"

namespace cmt {

/// Throws the error of a stream again, with the offset of its frame and the name of the stream.
[[noreturn]] void fail_in_stream(format::StreamId id, std::uint64_t frame_offset, const format::WireError& error);

/// A block of the stream with a checked header and decompressed streams. This part of decoding does not depend on the
/// blocks before, so any thread can do it. Throws format::WireError with offsets from the begin of the section.
class BlockBytes {
 public:
  BlockBytes() = default;

  /// `section` is whole, its checksum is verified, and it need not outlive the call. `live`: decompresses the table of
  /// a keyframe, too.
  BlockBytes(std::string_view section, const format::SectionStart& start, const ReadOptions& wanted, bool live,
             format::Decompressor& decompressor);

  const format::BlockHeader& header() const { return header_; }

  /// The content of a stream; empty if the block lacks the stream or nobody wants it.
  std::string_view stream(format::StreamId id) const {
    const Stream& stream = streams_[static_cast<std::size_t>(id)];
    return {stream.bytes.get(), stream.size};
  }

  /// Runs a step of decoding a stream. Adds to an error the offset of the frame, the name of the stream and the offset
  /// in its content.
  template <typename Decode>
  auto in_stream(format::StreamId id, const Decode& decode) const {
    try {
      return decode();
    } catch (const format::WireError& error) {
      fail_in(id, error);
    }
  }

 private:
  static constexpr std::size_t stream_count = 11;
  struct Stream {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };

  void place_frames(const format::SectionStart& start);
  void decompress(format::StreamId id, std::string_view section, format::Decompressor& decompressor);
  [[noreturn]] void fail_in(format::StreamId id, const format::WireError& error) const;

  format::BlockHeader header_;
  std::array<std::uint64_t, stream_count> frame_offsets_{};  // by stream, in the section; 0 = no such stream
  std::array<Stream, stream_count> streams_;
};

/// Decodes the header of a section. Offsets of errors count from the section's begin.
template <typename Take>
auto take_fields(const Take& take, std::string_view header) {
  try {
    return take(header);
  } catch (const format::WireError& error) {
    throw format::WireError(format::SectionStart::size + error.offset(), error.what());
  }
}

/// A block of the stream whose events are decoded.
struct OpenBlock {
  BlockBytes bytes;
  bool fresh;            ///< blocks may be missing before this one, which is a keyframe if addresses are wanted
  std::uint64_t offset;  ///< of its section, for messages
};

/// Decodes the events of one block after the other. Throws format::WireError as BlockBytes does.
///
/// There are two steps. The first decodes the core stream, which has the calls. The second decodes the other streams,
/// which depend on it. Two threads may do the steps, each for one batch of events after the other. next() does both.
class BlockDecoder {
 public:
  /// Adds to a table of stacks, if stacks are wanted.
  BlockDecoder(const ReadOptions& wanted, StackTable& stacks) : wanted_(wanted), definitions_(stacks) {}

  /// To be called before the first block of a sampled trace.
  void expect_samples() { is_sampled_ = true; }

  /// Defines the stacks of a block, unless they are known. To be called for all blocks in their order.
  void define_stacks(const format::BlockHeader& header, std::string_view stream);
  bool knows_stacks_of(std::uint64_t first_event) const { return stacks_before_.contains(first_event); }
  format::StackDefinitions& definitions() { return definitions_; }

  void start(BlockBytes&& bytes, bool fresh, std::uint64_t offset = 0);

  /// Leaves the block.
  void stop();

  /// The number of events so far, in all blocks, whose kind this version does not know.
  std::uint64_t unknown_kinds() const { return unknown_kinds_ + (core_ ? core_->unknown_kinds() : 0); }

  /// The next events, valid until the next call; empty at the block's end, where every stream has to end.
  std::span<const Event> next();

  /// The number of events that are decoded at once: 28 KB, which stay in the first-level cache.
  static constexpr std::size_t batch_events = 256;

  /// The first step for the next events, at most batch_events. Returns how many; 0 at the block's end. Leaves fields of
  /// other streams as they are.
  std::size_t next_core(std::span<Event> events);
  /// Whether one of these events may have a label, which lives as long as the block.
  bool has_labels() const { return core_->has_labels(); }
  /// Whether these events were the last ones of the block.
  bool has_read_block() const { return core_->is_done(); }
  /// The block of the first step; null between two blocks.
  const std::shared_ptr<const OpenBlock>& block() const { return block_; }

  /// The second step for the same events. After the last events of a block, to be called once with no events.
  void complete(const std::shared_ptr<const OpenBlock>& block, std::span<Event> events);

 private:
  void open_streams();
  template <typename Decoder>
  void fill(format::StreamId id, Decoder& decoder, std::span<Event> events);
  void check_ends();

  const ReadOptions& wanted_;
  bool is_sampled_ = false;
  std::vector<Event> batch_ = std::vector<Event>(batch_events);
  std::shared_ptr<const OpenBlock> block_;
  std::optional<format::CoreDecoder> core_;
  std::uint64_t unknown_kinds_ = 0;  // in blocks that are done

  // The second step uses these:
  std::shared_ptr<const OpenBlock> completed_;  // the block whose streams are open
  std::unique_ptr<format::AddressDecoder> addresses_;
  format::TimeDecoder times_;
  format::UsableDecoder usable_;
  format::StackDefinitions definitions_;
  std::map<std::uint64_t, std::size_t> stacks_before_;  // by a block's first event: stacks defined before the block
  std::uint64_t events_defined_ = 0;                    // in the blocks whose stacks are defined
  format::StackNumberDecoder stacks_;
  format::StackNumberDecoder pool_stacks_{format::StackOwner::pools};
};

}  // namespace cmt
