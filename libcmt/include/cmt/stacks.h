/// The call stacks of a trace, as a tree of frames in modules, each node, frame and module with a number.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmt/event.h"

namespace cmt {

/// A frame of a stack, in a StackTable: a place in the code. 0: frames further outside that were not recorded.
using FrameId = std::uint32_t;

/// A file of code in a StackTable. 0: none, as of code that a JIT compiler has made.
using ModuleId = std::uint32_t;

/// The path of the module of all lines of Python.
inline constexpr std::string_view python_module_path = "[python]";

/// A program or shared library in the recorded process's memory. The same file loaded twice is two modules.
struct Module {
  std::string path{};                   ///< as the loader has it; "[vdso]" is the kernel's, "[python]" an interpreter's
  std::string build_id{};               ///< the bytes of its GNU build id; empty: it has none
  std::uint64_t begin = 0, end = 0;     ///< its address range, without the end
  std::uint64_t bias = 0;               ///< address in memory less address in the file's symbol table
  std::uint64_t loaded_ns = unknown;    ///< when it was first seen, since the start of the recording
  std::uint64_t unloaded_ns = unknown;  ///< when it was unloaded; unknown: it stayed, or nobody saw it go

  /// Whether its frames are lines of an interpreter's program. No file of code has such a line: the trace itself has
  /// its names, and its address is only a number.
  bool is_interpreter() const { return path == python_module_path; }

  bool operator==(const Module&) const = default;
};

/// A place in the code.
struct Frame {
  ModuleId module = 0;
  std::uint64_t address = 0;  ///< in the process's memory: where the called function returns to
  bool is_exact = false;      ///< the address is that of the instruction itself, which a signal has interrupted

  /// An address inside the call, or of the interrupted instruction: the address by which symbols and lines are found.
  std::uint64_t instruction() const { return address - (is_exact || address == 0 ? 0 : 1); }

  bool operator==(const Frame&) const = default;
};

/// A stack: its innermost frame, and the stack that called it.
struct StackNode {
  StackId parent = 0;  ///< 0: the frame is the outermost; else below the node's own number
  FrameId frame = 0;   ///< 0, only of an outermost one: the stack is cut, and has further frames outside

  bool operator==(const StackNode&) const = default;
};

/// A function at a frame, as symbols name it.
struct FrameName {
  std::string_view function;  ///< demangled; empty: not known
  std::string_view file;      ///< of the source; empty: not known
  std::uint32_t line = 0;     ///< 0: not known
};

/// The most names that a frame has. No compiler inlines more functions in each other.
inline constexpr std::size_t frame_names_limit = 256;

/// The call stacks of a trace: a tree, in which each path from the root is a stack. Numbers count from 1 and keep their
/// meaning; a table only grows.
///
///     for (StackId at = event.stack; at != 0; at = stacks.node(at).parent)   // innermost first
///       print(stacks.frame(stacks.node(at).frame));
class StackTable {
 public:
  StackTable();

  const Module& module(ModuleId id) const { return modules_[id]; }
  const Frame& frame(FrameId id) const { return frames_[id]; }
  const StackNode& node(StackId id) const { return nodes_[id]; }
  /// All nodes, by number.
  std::span<const StackNode> nodes() const { return nodes_; }
  /// How many there are, number 0, which means "none", included: 1 in an empty table.
  std::uint32_t module_count() const { return static_cast<std::uint32_t>(modules_.size()); }
  std::uint32_t frame_count() const { return static_cast<std::uint32_t>(frames_.size()); }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }

  /// The functions at a frame, the innermost first: inlined functions, and then the function that contains them. Empty
  /// if its names were not looked up.
  std::span<const FrameName> names(FrameId id) const;
  bool has_names() const { return !names_.empty(); }

  /// The number of a module, a frame or a stack, which is added if the table does not have it. A parent, frame or
  /// module must be there already; at most 2^32 - 1 of each.
  ModuleId add_module(const Module& module);
  /// Adds a module although the table may have an equal one.
  ModuleId append_module(const Module& module);
  FrameId add_frame(const Frame& frame);
  StackId add_node(const StackNode& node) {
    const StackId next = node.parent + 1;
    if (next != nodes_.size()) return nodes_[next] == node ? next : add_in_slots(node);
    nodes_.push_back(node);
    return next;
  }
  /// The number of a stack, or 0 where the table does not have it.
  StackId find_node(const StackNode& node) const;
  /// Sets the time at which a module was unloaded.
  void set_unloaded(ModuleId id, std::uint64_t ns) { modules_[id].unloaded_ns = ns; }
  /// Sets the names of a frame, which may also be added later, and copies the strings. Leaves out the outermost names
  /// beyond frame_names_limit.
  void set_names(FrameId id, std::span<const FrameName> names);
  /// Adds a name to a frame as its outermost, and copies the strings. Returns false if the frame has frame_names_limit
  /// names already.
  bool add_name(FrameId id, const FrameName& name);

 private:
  struct FrameHash {
    std::size_t operator()(const Frame& frame) const {
      return (frame.address ^ std::uint64_t{frame.module} << 48 ^ std::uint64_t{frame.is_exact} << 63) *
             0x9e3779b97f4a7c15;
    }
  };

  std::size_t slot_of(const StackNode& node, std::uint32_t& tag) const;
  StackId add_in_slots(const StackNode& node);
  void make_slots(unsigned slot_bits, std::uint32_t number_mask);
  std::string_view keep(std::string_view text);

  std::vector<Module> modules_;
  std::vector<Frame> frames_;
  std::vector<StackNode> nodes_;
  // A hash table of nodes. A slot has the number of a node and, above it, bits of the node's hash. So a search rarely
  // looks at another node. A slot of 0 is free. Its size is a power of two, and it is at most half full. A node
  // that was added right after its parent is not in it, because its number follows from its parent's. Nearly all nodes
  // are such, since a new stack comes with all of its new frames.
  unsigned slot_shift_ = 64 - 10;       // 64 less the bits of a slot's number
  std::uint32_t number_mask_ = 0xffff;  // the bits of a slot that a node's number has
  std::vector<std::uint32_t> slots_;
  std::size_t used_slots_ = 0;
  std::unordered_map<Frame, FrameId, FrameHash> frame_ids_;
  std::unordered_map<FrameId, std::vector<FrameName>> names_;
  std::deque<std::string> texts_;  // of names
  std::unordered_map<std::string_view, std::string_view> known_texts_;
};

}  // namespace cmt
