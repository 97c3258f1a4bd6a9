/// Writes and reads the lines of a text trace that define modules, frames and nodes, and that name frames (format-
/// spec/text.md, "Call stacks"). A reader that does not want call stacks takes these lines for comments.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/stacks.h"
#include "libcmt/number_hash.h"
#include "libcmt/text/scanner.h"

namespace cmt::text {

/// Writes the definitions, each before the first event that needs it. The text has its own numbers, by first use.
class StackLineWriter {
 public:
  /// Borrows the table. A later table has to continue the table before.
  void use(const StackTable& table) { table_ = &table; }

  /// Appends the lines that a stack needs, and returns the stack's number in the text.
  std::uint32_t append_stack(std::string& out, StackId id);

  /// The number of a stack in the lines so far; 0 if it has none.
  std::uint32_t node_number(StackId id) const { return id < node_numbers_.size() ? node_numbers_[id] : 0; }

  /// Appends the lines that are known only at the end: unloaded modules, and names that no line has yet.
  void append_end(std::string& out);

 private:
  std::uint32_t append_frame(std::string& out, FrameId id);
  std::uint32_t append_module(std::string& out, ModuleId id);
  void append_names(std::string& out, std::uint32_t frame);

  const StackTable* table_ = nullptr;
  // By the table's numbers, those in the text; 0: none yet.
  std::vector<std::uint32_t> node_numbers_, frame_numbers_, module_numbers_;
  std::vector<FrameId> frames_{0};  // the table's numbers, by those in the text
  std::vector<bool> is_named_{true};
  std::vector<ModuleId> modules_{0};
  std::uint32_t nodes_ = 0;
  std::vector<StackId> path_;  // scratch
};

/// Reads the definitions into a table.
class StackLineReader {
 public:
  explicit StackLineReader(StackTable& table) : table_(table) {}

  /// Whether a line looks like one of these.
  static bool is_definition(std::string_view line);

  /// Takes such a line, without its LF. Returns the part that is missing, or an empty view if the line is right.
  std::string_view take(std::string_view line);

  /// The stack of a number in the text; 0 if it is not defined.
  StackId find(std::uint64_t number) const {
    const auto found = nodes_.find(number);
    return found == nodes_.end() ? 0 : found->second;
  }

 private:
  using Numbers = tsl::robin_map<std::uint64_t, std::uint32_t, NumberHash>;
  struct Fields;

  std::string_view take_module(Fields& fields);
  std::string_view take_frame(Fields& fields);
  std::string_view take_name(Fields& fields);
  std::string_view take_node(Fields& fields);
  std::string_view take_unloaded(Fields& fields);

  StackTable& table_;
  Numbers modules_{{0, 0}}, frames_{{0, 0}}, nodes_{{0, 0}};
};

}  // namespace cmt::text
