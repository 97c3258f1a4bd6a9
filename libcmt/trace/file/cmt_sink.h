/// Writes a .cmt. The rules for keyframes, origins and threads are in cmt_sink.cpp.
#pragma once

#include <cassert>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cmt/writer.h"
#include "libcmt/format/addresses.h"
#include "libcmt/format/columns.h"
#include "libcmt/format/core.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/stacks/stack_streams.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/file/origin_table.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/task_thread.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {

/// A full block of the stream, before or after it was compressed.
struct FullBlock {
  format::BlockHeader header;
  std::vector<std::pair<format::StreamId, std::string>> streams;     // not compressed
  std::string stack_numbers, pool_stacks, stack_nodes, frame_names;  // streams too, after the others in the file
  std::string body;
  std::uint64_t address_bytes = 0, origin_bytes = 0;
  std::uint64_t origins = 0;       // the number of live blocks in the stream of origins
  bool counts = true;              // no keyframe has begun since
  bool counts_for_origins = true;  // no keyframe with origins has begun since
};

/// Gets the full blocks of a CmtSink instead of its output, for a flight recorder.
struct BlockTaker {
  /// Takes a block, whose `body` has the compressed streams. May move from the body.
  std::function<void(FullBlock&)> take;
  /// Whether the block that begins should be a keyframe.
  std::function<bool()> wants_keyframe;
};

/// The entry of an event in the stream of stacks. An event that neither allocates nor releases has no entry.
struct EventStack {
  Kind kind{};
  StackId stack = 0;
};

/// Writes .cmt. Blocks are encoded as they fill, so memory is bounded by the block size and the live blocks.
class CmtSink : public Sink {
 public:
  /// `live` has the live blocks for the tables of keyframes.
  CmtSink(Output& output, Header header, const WriteOptions& options, const LiveBlockSource& live)
      : output_(output), header_(std::move(header)), options_(options), compressor_(options.level), live_(live) {
    CmtSink::use_thread(options.threads > 1);
  }

  void add_event(const BookedEvent& booked) override;
  void add_batch(const EventBatch& batch) override;
  std::size_t room() const override;
  void flush() override;
  void finish(const Totals& totals) override;
  void use_thread(bool wanted) override;
  void use_stacks(const StackTable& stacks) override;
  StackId stack_in_file(StackId stack) const override { return stacks_.node_number(stack); }

  /// From now on, `taker` gets the blocks. To be called before the first event, for a sink without thread and stacks.
  void hand_over_blocks(BlockTaker taker) {
    assert(!started_ && thread_ == nullptr && !stacks_.is_used());
    taker_ = std::move(taker);
    origins_.give_up();
    core_.leave_spare_forms();
  }
  /// Ends the block that fills, also if it has only events from before the first allocation.
  void end_block();

  /// Sets the state before the first event, for a trace that begins within a recording. To be called before that event.
  void start_at(const format::CoreState& state);
  /// The next allocation has at least this tag.
  void skip_tags_to(Tag tag) { core_.skip_to(tag); }
  /// Appends a block that was handed over, with the stacks of its events that allocate or release. After it, only
  /// further such blocks may follow. It begins where the events before have ended, or it is the first block.
  void append_block(FullBlock block, std::span<const EventStack> stacks);
  /// The state after the events that were added.
  const format::CoreState& state() const { return core_.state(); }

 private:
  /// A block ends when its definitions are larger. This is far below a stream's limit, since one more stack may define
  /// many modules. Programs do not come near it.
  static constexpr std::size_t definitions_enough = 1 << 24;
  /// With more live blocks, no origins are kept. This bounds the time of a keyframe, and the memory of the origins to
  /// some 128 MiB if no block has an Extra (OriginTable).
  static constexpr std::size_t origins_max = 1 << 21;

  bool begin(const BookedEvent& booked);
  void encode(const BookedEvent& booked, bool may_begin_keyframe = true);
  std::size_t encode_core(std::span<const BlockEvent> events, const BookedEvent* other);
  void note_times(std::span<const BlockEvent> events);
  void note_stacks(const EventBatch& batch, std::size_t first, std::size_t count);
  void encode_columns(std::span<const BlockEvent> events, const BookedEvent* other, bool has_times);
  void encode_columns_of(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other);
  void take_columns_back();
  void finish_columns(FullBlock& block);
  bool block_is_full() const {
    return core_.events() == options_.block_events || core_.full() || stacks_.definitions_size() > definitions_enough;
  }
  void start_core(Tag next_tag);
  void flush_block();
  void start_block(bool may_be_keyframe = true);
  void put_header();
  void note_recorded(const format::BlockHeader& block);
  bool keyframe_is_due() const;
  bool origins_are_due() const;
  void put_tables();
  void compress(FullBlock& block);
  void write(FullBlock& block);
  std::uint64_t write_names();
  void settle();

  Output& output_;
  Header header_;
  WriteOptions options_;
  format::Compressor compressor_;
  const LiveBlockSource& live_;
  BlockTaker taker_{};

  format::CoreEncoder core_;
  format::BlockHeader block_;                // header of the block that fills
  std::string live_table_, origins_stream_;  // for a keyframe
  std::uint64_t origins_written_ = 0;        // live blocks in origins_stream_
  format::StackEncoder stacks_;
  OriginTable origins_{origins_max, live_};
  std::optional<FullBlock> last_;    // the block that was full last
  std::uint64_t last_written_ = 0;   // the task that compresses and writes it
  std::uint64_t last_ns_ = unknown;  // of the last event that has a time

  // If there is a thread, these belong to it while it has tasks.
  format::AddressEncoder addresses_;
  format::TimeEncoder times_;
  format::UsableEncoder usable_;
  std::vector<BlockStart> index_;
  std::vector<std::pair<Event, std::string>> waiting_;  // events before the first allocation, and their labels
  Tag waiting_above_ = 1;
  bool started_ = false;
  bool header_written_ = false;
  std::uint64_t events_ = 0;
  std::uint32_t blocks_since_keyframe_ = 0;
  std::uint64_t address_bytes_since_keyframe_ = 0;
  bool has_addresses_ = false;
  std::uint32_t blocks_since_origins_ = 0;
  std::uint64_t bytes_since_origins_ = 0;
  std::uint64_t bytes_per_origin_ = 8;

  /// A part of a batch.
  struct ColumnTask {
    EventBatch batch;  // a copy
    std::size_t first, count, first_other;
  };
  std::vector<ColumnTask> column_tasks_;  // tasks that the thread has not done, and free places
  std::size_t next_column_task_ = 0;
  bool has_thread_columns_ = false;  // the thread has events of the columns
  std::unique_ptr<TaskThread> thread_;
};

}  // namespace cmt
