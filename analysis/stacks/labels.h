#pragma once

#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmt/stacks.h"

namespace cmt::analysis {

/// Whether a function only hands memory on, so that its caller is the one that allocates: malloc and its kin, operator
/// new, what the C++ library's containers get memory by (functions of std:: and __gnu_cxx:: with names such as
/// allocate, _M_create and _M_get_node), and Rust's alloc::alloc and alloc::raw_vec.
bool is_allocation_function(std::string_view function);

/// A text that many frames have, by its number.
using LabelId = std::uint32_t;

/// What identifies a function of a stack in a report.
struct Label {
  LabelId text = 0;
  bool is_allocation = false;
  std::uint32_t name = 0;  ///< index of its function in the names of the frame, where that has any
};

/// By what the functions of stacks are put together.
enum class Key { function, line, library };

/// An extended regular expression (regcomp(3)) that names of functions are compared with. Empty: matches none.
class NamePattern {
 public:
  /// Throws std::invalid_argument for a bad expression.
  explicit NamePattern(const std::string& text);
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  bool is_empty() const { return compiled_ == nullptr; }
  /// A name that is empty matches nothing. What is known of a name is kept: it has to live as long.
  bool matches(std::string_view name);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;  // null: empty
};

/// The labels of frames. A frame has several where functions are inlined. Each text has one number.
class Labels {
 public:
  /// Functions that match `skipped` count as allocation functions; those that match `hidden` have no label. Borrows
  /// `stacks`. Throws std::invalid_argument for a bad expression.
  Labels(const StackTable& stacks, Key key, const std::string& skipped, const std::string& hidden = {});

  /// The labels of a frame, the innermost function first; none where all are hidden.
  std::span<const Label> of_frame(FrameId frame);

  std::string_view text(LabelId id) const {
    assert(id < texts_.size());
    return texts_[id];
  }
  /// The text without a library behind it, and the path of that library; empty: none.
  std::string_view own_text(LabelId id) const { return std::string_view(texts_[id]).substr(0, own_lengths_[id]); }
  std::string_view library(LabelId id) const { return libraries_[id]; }
  std::size_t count() const { return texts_.size(); }

  /// A number for a text of its own. Functions of the same name are others in another library, and have its name
  /// behind theirs: "init [liba.so]".
  LabelId intern(const std::string& text, const std::string& library = {});

 private:
  bool is_skipped(std::string_view function);

  const StackTable& stacks_;
  Key key_;
  NamePattern skipped_, hidden_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string, LabelId> ids_;        // by text, a zero byte, and library
  std::unordered_map<std::string, LabelId> first_ids_;  // of a function's name, by the name
  std::vector<std::string> libraries_;                  // by label
  std::vector<std::size_t> own_lengths_;                // of texts; where one is longer, its library stands behind it
  std::vector<std::optional<std::vector<Label>>> by_frame_;
};

/// A function of a frame as text: its name, else where it is: "libx.so.1+0x1234", "7f2a3c001010"; "[cut]" of frame 0.
std::string function_text(const StackTable& stacks, FrameId frame, const FrameName* name);

/// A function's name as a part of a line of a folded stack: a semicolon is a colon, a control character a question
/// mark.
std::string part_text(std::string_view function);

/// The file's name of a frame's module: "libx.so.1"; "[no module]".
std::string library_text(const StackTable& stacks, FrameId frame);

}  // namespace cmt::analysis
