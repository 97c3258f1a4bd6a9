// Call stacks of a recording: from the differences between stacks, which the rings have, to nodes of one table. Nearly
// every allocation passes here, so the usual stack takes a short way.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cmt/stacks.h"
#include "preload/protocol.h"
#include "preload/stack_share.h"

namespace cmt::collector {

/// The call stacks of a recording: turns the frames in the rings' records into nodes of a StackTable. protocol.h, "Call
/// stacks", says what the records mean. Damaged rings give wrong stacks, or none, but nothing worse.
///
/// Interpreters. A line of Python has its names from the shared memory, and is a frame of one module without a file.
///
/// Memory. The table has at most `nodes_max` nodes, 160 MB. Later new stacks are cut to the part that the table has. If
/// the table has no part of a stack, the stack has no frames and is cut.
///
/// Threads: used by one, the encoder.
class RingStacks {
 public:
  static constexpr std::uint32_t nodes_max = 1 << 23;

  /// The most bytes of a function's or file's name, which bounds the memory that damaged rings can ask for.
  static constexpr std::size_t name_bytes_max = 4096;

  static constexpr std::uint32_t stack_index_mask = (1u << stack_index_bits) - 1;

  /// Translates a stamp to the time since the start of the recording.
  using TimeOf = std::function<std::uint64_t(std::uint64_t)>;

  /// `share`: borrowed; null if it is missing in a damaged file of rings.
  RingStacks(const StackShare* share, bool has_stacks_of_frees, TimeOf time_of, std::uint32_t limit = nodes_max);

  const StackTable& table() const { return table_; }
  /// For a recovery: copies the entries of a trace's table that were not copied before. To be called before any frame
  /// is met.
  void restore(const StackTable& trace);
  /// The number in table() of a stack of the trace's table; 0: the trace's table does not have it.
  StackId restored(StackId stack) const { return stack < restored_nodes_.size() ? restored_nodes_[stack] : 0; }

  /// All bits if events of a kind have stacks, else 0.
  StackId stack_mask(std::uint32_t kind) const {
    assert(kind < stack_masks_.size());
    return stack_masks_[kind];
  }
  /// The frame of an index of UnwindTable::rule or InterpreterFrames::frame; 0: none.
  FrameId frame(std::uint32_t index) {
    const FrameId known = frames_[index & stack_index_mask];
    return known != 0 ? known : resolve(index);
  }
  /// The stack of a frame that is called from `parent`; 0: the table is full.
  StackId add_node(StackId parent, FrameId frame) {
    return table_.node_count() < limit_ ? table_.add_node({parent, frame}) : table_.find_node({parent, frame});
  }
  /// Adds nodes for the frames of `count` indexes, the first in the lowest bits of `indexes`, and writes their numbers
  /// to `to`. Returns the end of the written numbers. It stops early at an unknown frame, or if the table is full.
  StackId* add_nodes(StackId parent, SlotPayload indexes, std::uint32_t count, StackId* to) {
    assert(count <= stack_frames_more && parent < table_.node_count());
    const StackNode* nodes = table_.nodes().data();
    std::uint32_t node_count = table_.node_count();
    for (; count != 0; --count, indexes >>= stack_index_bits) {
      const std::uint32_t index = static_cast<std::uint32_t>(indexes) & stack_index_mask;
      const StackNode node{parent, frames_[index]};
      if (parent + 1 < node_count && nodes[parent + 1] == node && node.frame != 0) {  // mostly, as in add_node()
        ++parent;
      } else {
        const FrameId met = frame(index);
        parent = met != 0 ? add_node(parent, met) : 0;
        if (parent == 0) break;
        nodes = table_.nodes().data();
        node_count = table_.node_count();
      }
      *to++ = parent;
    }
    return to;
  }
  /// Returns the stack of which no frame is known.
  StackId add_cut_root() { return table_.add_node({0, 0}); }

  /// Notes the modules that have been unloaded. To be called now and then.
  void note_unloaded();

  /// Count an event that should have a stack but has none, or has only a part of it because the table is full.
  void note_unknown() { ++unknown_events_; }
  void note_cut() { ++cut_events_; }
  std::uint64_t unknown_events() const { return unknown_events_; }
  std::uint64_t cut_events() const { return cut_events_; }

 private:
  struct KnownModule {
    ModuleId id = 0;  // 0: not met yet
    std::uint64_t unloaded = 0;
  };

  static constexpr std::size_t frames_bytes = (stack_index_mask + std::size_t{1}) * sizeof(FrameId);
  struct Unmap {
    void operator()(FrameId* frames) const;
  };
  static FrameId* map_frames();

  FrameId resolve(std::uint32_t index);
  FrameId resolve_line(std::uint32_t number);
  ModuleId module_at(std::uint32_t number);
  ModuleId add_module(const StackModule& module);

  const StackShare* const share_;
  const TimeOf time_of_;
  const std::uint32_t limit_;
  std::array<StackId, slot_kind_mask + 1> stack_masks_{};
  StackTable table_;
  // By a record's index; 0: not met yet. Nothing touches the memory before its use; calloc would.
  const std::unique_ptr<FrameId[], Unmap> frames_;
  std::vector<KnownModule> modules_;  // by number in StackShare, counted from 1
  std::vector<ModuleId> restored_modules_{0},
      unmet_modules_;  // by number in the trace; and those not yet met in StackShare
  std::vector<FrameId> restored_frames_{0};
  std::vector<StackId> restored_nodes_{0};
  std::uint64_t unknown_events_ = 0, cut_events_ = 0;
};

/// The last stack of one ring, to which the next stack is a difference.
class StackChain {
 public:
  explicit StackChain(RingStacks& stacks) : stacks_(&stacks) {}

  /// For a recovery: sets the ring's last stack.
  void resume(StackId stack);

  /// Takes a record of a kind from record_void on.
  void take_record(const Slot& record, std::uint32_t kind) {
    if (kind == record_stack) {
      if (!add_usual_stack(record)) begin_stack(record);
    } else if (kind == record_frames && left_ != 0) {
      add_frames(payload_of_slot(&record), stack_frames_more);
    } else if (kind == record_void) {
      if (left_ != 0) end_incomplete();
      has_apart_ = false;
    }
  }

  /// Returns the stack of the next record, by the record's kind; 0: the record is no event, or its stack is unknown or
  /// not recorded.
  StackId stack_of_next(std::uint32_t kind) {
    return is_plain_ && kind < record_events ? last_ & stacks_->stack_mask(kind) : stack_of_odd(kind);
  }

  /// The ring's last stack; 0: not known, or none.
  StackId last() const { return last_; }

 private:
  static constexpr std::uint32_t any = ~std::uint32_t{0};

  StackId stack_of_odd(std::uint32_t kind);
  bool add_usual_stack(const Slot& record);
  void begin_stack(const Slot& record);
  void keep(const StackRecord& next);
  void add_frames(SlotPayload frames, std::uint32_t count);
  void add_frame(std::uint32_t index);
  void end_stack();
  void end_incomplete();
  void forget();

  RingStacks* stacks_;
  std::vector<StackId> nodes_;    // of the last stack, by depth, the outermost first
  std::uint32_t depth_ = 0;       // of the last stack
  std::uint32_t complete_ = any;  // so many of its frames have nodes; inner frames share the last node
  std::uint32_t number_ = any;    // of the last stack's record
  bool is_known_ = false, is_last_short_ = false;
  StackId last_ = 0;
  bool is_plain_ = false;  // the next event's stack is last_: nearly always
  // The stack that is being read.
  StackId at_ = 0;          // the node so far
  std::uint32_t left_ = 0;  // frames to come
  bool is_apart_ = false;
  bool is_sound_ = false;  // all frames so far are known
  bool is_short_ = false;  // the table had no room for its innermost frames
  // A stack for the next event only.
  bool has_apart_ = false, is_apart_short_ = false;
  StackId apart_ = 0;
};

}  // namespace cmt::collector
