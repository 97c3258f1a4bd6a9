/// The functions of frames as reports name them.
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

#include "analysis/stacks/function_names/allocation_functions.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// The number of a label's text, which many frames may have.
enum class LabelId : std::uint32_t {};
constexpr std::size_t index_of(LabelId label) { return static_cast<std::size_t>(label); }

/// A function of a frame, as a report identifies it.
struct Label {
  LabelId text{};
  bool is_allocation = false;
  std::uint32_t name = 0;  ///< index of its function in the names of the frame; 0 if the frame has none
};

/// The property by which the functions of stacks are put together.
enum class Key { function, line, library };

/// Extended regular expressions (regcomp(3)) for names, of which one has to match. An empty one matches none.
class NamePattern {
 public:
  static constexpr char separator = '\n';  ///< of several expressions

  /// Throws std::invalid_argument for a bad expression.
  explicit NamePattern(const std::string& text);
  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  bool is_empty() const { return compiled_.empty(); }
  /// Returns whether a function's name matches; an empty name does not. An expression without "<", "\(" and "[(]" is
  /// for the function's own name (function_names/short_name.h), so `std::` does not match "grow(std::vector<int>&)".
  /// The result is kept by the name, which must live as long as the pattern.
  bool matches_function(std::string_view name);
  /// Returns whether a path or a line matches; an empty text does not. The result is kept in the same way.
  bool matches_place(std::string_view text);

 private:
  struct Compiled;
  std::vector<std::unique_ptr<Compiled>> compiled_;
  std::unordered_map<std::string_view, bool> functions_, places_;  // what is known of each text
};

/// Above the number of any module.
inline constexpr ModuleId no_modules = ~ModuleId{0};

/// Which function of a stack its blocks are charged to: the innermost one that is no allocation function, and the
/// outermost one if all are. For example, xmalloc is charged if it has no caller.
///
/// Modules from the number `handing_on_from` on also only hand memory on (native_frames.h), unless `raw` is set.
struct ChargeRule {
  std::string skipped{};  ///< functions that count as allocation functions too, an extended regular expression
  bool raw = false;       ///< only these do: the list of allocation_functions.cpp is not used
  ModuleId handing_on_from = no_modules;
};

/// The allocation functions of a rule.
class AllocationFunctions {
 public:
  /// Throws std::invalid_argument for a bad expression.
  explicit AllocationFunctions(const ChargeRule& charges)
      : skipped_(charges.skipped), raw_(charges.raw), handing_on_from_(charges.handing_on_from) {}

  /// Whether one of the functions of a frame only hands memory on. The name's texts must live as long as this; they
  /// are empty for a frame without names.
  bool has(const StackTable& stacks, FrameId frame, const FrameName& name);

 private:
  NamePattern skipped_;
  bool raw_;
  ModuleId handing_on_from_;
};

/// The labels of frames. A frame has several where functions are inlined. Each text has one number.
class Labels {
 public:
  /// Functions that match `hidden` have no label. Borrows `stacks`. Throws std::invalid_argument for a bad expression.
  Labels(const StackTable& stacks, Key key, const ChargeRule& charges, const std::string& hidden = {});

  /// Returns the labels of a frame, the innermost function first; none if all are hidden.
  std::span<const Label> of_frame(FrameId frame);

  std::string_view text(LabelId id) const {
    assert(index_of(id) < texts_.size());
    return texts_[index_of(id)];
  }
  /// The text without a library's name after it.
  std::string_view own_text(LabelId id) const {
    return std::string_view(texts_[index_of(id)]).substr(0, own_lengths_[index_of(id)]);
  }
  /// The path of the library; empty: none.
  std::string_view library(LabelId id) const { return libraries_[index_of(id)]; }
  std::size_t count() const { return texts_.size(); }

  /// Returns the number of a text. Functions of the same name in several libraries have different numbers, and the
  /// library's name after their own: "init [liba.so]". The library of a function of Python is its file.
  LabelId intern(const std::string& text, const std::string& library = {});

 private:
  const StackTable& stacks_;
  Key key_;
  AllocationFunctions allocation_functions_;
  NamePattern hidden_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string, LabelId> ids_;        // by text, a zero byte, and library
  std::unordered_map<std::string, LabelId> first_ids_;  // of a function's name, by the name
  std::vector<std::string> libraries_;                  // by label
  std::vector<std::size_t> own_lengths_;                // by label; a longer text has its library's name after it
  std::vector<std::optional<std::vector<Label>>> by_frame_;
};

/// Returns a function of a frame as text: its name, or else its place, as "libx.so.1+0x1234" or "7f2a3c001010". Returns
/// "[cut]" for frame 0.
std::string function_text(const StackTable& stacks, FrameId frame, const FrameName* name);

/// Returns a function's name as a part of a folded stack: a semicolon becomes a colon, a control character a question
/// mark.
std::string part_text(std::string_view function);

/// Returns the file's name of a frame's module: "libx.so.1", or "[no module]". A frame of Python has its package's name
/// (python_frames.h).
std::string library_text(const StackTable& stacks, FrameId frame);

}  // namespace cmt::analysis
