// The streams of call stacks of a .cmt, encoder and decoder: the number of each event's stack, and the definitions of
// these numbers (format-spec/cmt.md, "Call stacks").
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "cmt/stacks.h"
#include "libcmt/format/coding.h"
#include "libcmt/number_hash.h"

namespace cmt::format {

/// Stacks and nodes of the tree are counted apart, because most nodes are only parts of stacks.

/// Which events have a value in the stream of numbers: those of kinds with at least one of these traits.
enum class StackRule : std::uint8_t { allocating = cmt_allocates, releasing_too = cmt_allocates | cmt_releases };

/// The two streams of numbers: of malloc's events, and of those of pools.
enum class StackOwner : std::uint8_t { blocks, pools };

/// The bits of StackRule by which a kind has values in the stream of pools.
constexpr unsigned pool_stack_bits(Kind kind) {
  if (kind == Kind::pool_malloc) return cmt_allocates;
  return kind == Kind::pool_free ? unsigned{cmt_releases} : 0;
}

/// Numbers in the file. Each counts from 1, by first use; 0 means none. A StackTable numbers the same things
/// differently (StackId, FrameId, ModuleId). Distinct types let the compiler refuse a mix-up.
enum class StackNumber : std::uint32_t {};
enum class NodeNumber : std::uint32_t {};
enum class FrameNumber : std::uint32_t {};
enum class ModuleNumber : std::uint32_t {};

template <class Number>
constexpr std::uint32_t raw(Number number) {
  return static_cast<std::uint32_t>(number);
}

/// Encodes both streams, one block after the other.
class StackEncoder {
 public:
  /// The events' stacks are numbers of `table`, which is borrowed. Another table has to continue the table before. Once
  /// the file has `limit` nodes, stacks that need more are unknown in the file.
  void use(const StackTable& table, std::uint32_t limit = nodes_limit) {
    table_ = &table;
    nodes_limit_ = limit;
  }
  bool is_used() const { return table_ != nullptr; }

  void add(Kind kind, StackId stack) {
    const KindTraits& kind_traits = traits(kind);
    if (kind_traits.allocates) {
      numbers_.push_back(raw(number_of(stack)));
    } else if (kind_traits.releases) {
      numbers_.push_back(raw(number_of(stack)) | only_releases);
    } else if (is_of_pool(kind)) {
      const StackId known = stack < only_releases ? stack : 0;
      pool_stacks_.push_back(kind == Kind::pool_free ? known | only_releases : known);
    }
  }

  /// The bytes of the definitions in this block so far.
  std::size_t definitions_size() const { return definitions_.size(); }

  /// Returns the numbers of the block's stacks; empty if no event has a stack. To be called before
  /// finish_pool_numbers(), and that before finish_definitions().
  std::string finish_numbers();
  /// The same for the events of pools. Their stacks are defined after all others of the block. So a reader that does
  /// not know pools finds in the stream of the other events all that it needs.
  std::string finish_pool_numbers();
  /// Returns the definitions of this block; empty if nothing is new.
  std::string finish_definitions();

  /// Puts the modules of finished blocks that were unloaded since they were written.
  void put_unloaded(VarintWriter& out);
  /// The number of a stack's node in a reader's table; 0: the node is not in the blocks so far.
  StackId node_number(StackId id) const { return id < node_numbers_.size() ? raw(node_numbers_[id]) : 0; }
  /// The number of a stack in the file; 0: no event has had this stack, or the file does not know it.
  std::uint32_t stack_number(StackId id) const { return id < stack_numbers_.size() ? raw(stack_numbers_[id]) : 0; }
  /// The table's number of each frame in the file, by FrameNumber. [0] is 0.
  std::span<const FrameId> frames() const { return frames_; }
  /// The first number in frames() that no finished block has defined.
  std::size_t first_new_frame() const { return frames_before_; }
  const StackTable& table() const { return *table_; }

 private:
  static constexpr std::uint32_t only_releases = std::uint32_t{1} << 31;

  struct WrittenModule {
    ModuleId id = 0;
    std::uint64_t unloaded_ns = unknown;
    std::uint64_t last_address = 0;  // of the frame that was written last
  };

  StackNumber number_of(StackId id) {
    if (id < stack_numbers_.size() && stack_numbers_[id] != StackNumber{}) return stack_numbers_[id];
    return id != 0 ? define(id) : StackNumber{};
  }
  StackNumber define(StackId id);
  static void put_numbers(VarintWriter& out, std::vector<std::uint32_t>& numbers, std::uint64_t newest);
  void put_attachment(StackId parent);
  void put_frame(FrameNumber caller, FrameId id);
  void define_frame(FrameId id);
  void define_module(ModuleId id);

  const StackTable* table_ = nullptr;
  // The numbers in the file by the table's numbers; 0: none yet.
  std::vector<StackNumber> stack_numbers_;
  std::vector<NodeNumber> node_numbers_;
  std::vector<FrameNumber> frame_numbers_{FrameNumber{}};
  std::vector<ModuleNumber> module_numbers_{ModuleNumber{}};
  std::vector<FrameId> frames_{0};          // by FrameNumber
  std::vector<WrittenModule> modules_{{}};  // by ModuleNumber
  // The rank of a called frame among all frames that its caller calls, from 1. The key has both FrameNumbers.
  tsl::robin_map<std::uint64_t, std::uint32_t, NumberHash> ranks_;
  std::vector<std::uint32_t> called_counts_{0};  // by a caller's FrameNumber
  std::uint32_t stacks_ = 0, nodes_ = 0, nodes_limit_ = nodes_limit;
  StackId last_ = 0;                        // the stack that was defined last
  std::vector<StackId> path_;               // scratch
  std::vector<std::uint32_t> numbers_;      // the StackNumbers of this block's events, with only_releases
  std::vector<std::uint32_t> pool_stacks_;  // of this block's events of pools: in the table, with only_releases
  std::uint32_t stacks_before_ = 0, pool_stacks_before_ = 0;  // this block; the stacks of its events of pools
  std::size_t modules_before_ = 1, frames_before_ = 1;
  VarintWriter definitions_;
};

/// Decodes the definitions of all blocks, in their order, into a table. Throws WireError with the offset in the stream.
class StackDefinitions {
 public:
  explicit StackDefinitions(StackTable& table, std::uint32_t limit = nodes_limit)
      : table_(table), nodes_limit_(limit) {}

  /// Takes the definitions of a block of `events` events.
  void take_block(std::string_view stream, std::uint64_t events);

  void take_unloaded(Cursor& cursor);

  /// The table's number of each stack, by StackNumber. [0] is 0.
  std::span<const StackId> stacks() const { return stacks_; }
  StackTable& table() { return table_; }

 private:
  StackId take_attachment(Cursor& cursor) const;
  FrameId take_frame(Cursor& cursor, StackId parent);
  FrameId define_frame(Cursor& cursor);
  ModuleId define_module(Cursor& cursor);

  StackTable& table_;
  const std::uint32_t nodes_limit_;
  std::vector<StackId> stacks_{0};
  std::vector<std::vector<FrameId>> called_{{}};  // by the caller's frame
  std::vector<std::uint64_t> last_addresses_{0};  // by module
};

/// Decodes the numbers of one block.
class StackNumberDecoder {
 public:
  explicit StackNumberDecoder(StackOwner owner = StackOwner::blocks) : owner_(owner) {}

  /// `definitions` has the stacks of all blocks up to this one. The blocks before this one have defined the first
  /// `known`.
  void start(std::string_view bytes, const StackDefinitions& definitions, std::size_t known);
  void fill(std::span<Event> events);
  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 private:
  StackId next();

  const StackOwner owner_;
  Cursor cursor_{{}};
  const StackDefinitions* definitions_ = nullptr;
  std::size_t known_ = 0;
  std::uint64_t last_ = 0;
  unsigned rule_ = 0;  // properties; 0: the block has no stacks
};

}  // namespace cmt::format
