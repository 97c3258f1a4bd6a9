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

/// The lines of a text that define modules, frames and nodes, and that name frames (format-spec/text.md, "Call
/// stacks"). To readers that do not want stacks they are comments.

/// Writes them, each before the first event that needs it. Numbers are the text's own, by first use.
class StackLineWriter {
 public:
  /// The table is borrowed. Another one has to continue the one before.
  void use(const StackTable& table) { table_ = &table; }

  /// The number in the text of a stack, behind the lines that it needs.
  std::uint32_t append_stack(std::string& out, StackId id);

  /// The number of a stack in the lines so far; 0: it has none.
  std::uint32_t node_number(StackId id) const { return id < node_numbers_.size() ? node_numbers_[id] : 0; }

  /// What is known only at the end: modules that went, and names that no line has yet.
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

/// Reads them into a table.
class StackLineReader {
 public:
  explicit StackLineReader(StackTable& table) : table_(table) {}

  /// Whether a line looks like one of these.
  static bool is_definition(std::string_view line);

  /// Such a line, without its end. Returns what should have stood there; empty: the line is right.
  std::string_view take(std::string_view line);

  /// The stack of a number in the text; 0: it is not defined.
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
