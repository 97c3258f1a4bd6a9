/// Functions, files and lines from DWARF debug information, for the addresses of one module.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "toolkit/symbols/symbol_table.h"

namespace cmt::symbols {

/// A function at an address, with its place in the source.
struct SourceFrame {
  std::string function;  ///< demangled; empty: not known
  std::string file;      ///< empty: not known
  std::uint32_t line = 0;
};

/// Looks addresses up in DWARF debug information: the functions there, inlined ones among them, files and lines.
///
/// Each unit that has code at one of the addresses is walked once, from its functions down to inlined ones. Addresses
/// are those of the debug information. Damaged debug information gives fewer answers.
class DebugInfo {
 public:
  /// The number of an address in the list, and its functions, the innermost first. One frame without a function: only
  /// the file and the line are known.
  using Found = std::function<void(std::size_t index, std::vector<SourceFrame>&& frames)>;

  /// Borrows all. `symbols` name functions whose mangled name the debug information lacks; their addresses are by
  /// `symbols_bias` larger. `bytes`: of the file, which bound how long a damaged one is followed. `folders`: in which
  /// libdw looks for the files of split units.
  DebugInfo(Dwarf* dwarf, const SymbolTable& symbols, std::uint64_t symbols_bias, std::uint64_t bytes,
            std::vector<std::string> folders);

  /// Calls `found` for each of the addresses, which rise, that a function or a table of lines has.
  void look_up(std::span<const std::uint64_t> addresses, const Found& found);

 private:
  /// Numbers of addresses, rising.
  using Indexes = std::vector<std::size_t>;

  std::optional<Dwarf_Die> split_unit_of(Dwarf_Die skeleton) const;
  Indexes within(Dwarf_Die die, const Indexes& among) const;
  void walk_unit(Dwarf_Die unit, Dwarf_Die lines, const Indexes& wanted);
  void walk_scope(Dwarf_Die scope, Indexes wanted, bool descends_types, int depth);
  void walk_function(Dwarf_Die die, const Indexes& wanted, int depth);
  bool is_known(std::size_t index) const { return known_[index]; }
  void report_frames(std::size_t index);
  void report_place(std::size_t index, Dwarf_Line* line);
  void look_up_in_tables(std::vector<Dwarf_Off>& of_units);
  void look_up_in_table(Dwarf_Off table);
  SourceFrame call_place(Dwarf_Die inlined) const;
  const std::string& name_of(Dwarf_Die function, std::uint64_t address);
  std::string new_name(Dwarf_Die function, std::uint64_t address);
  bool first_child(Dwarf_Die parent, Dwarf_Die& child);
  bool next_sibling(Dwarf_Die& die);
  std::string qualifier_of(Dwarf_Die declaration, const char* unnamed);

  Dwarf* dwarf_;
  const SymbolTable& symbols_;
  std::uint64_t symbols_bias_;
  std::uint64_t steps_left_;
  std::vector<std::string> folders_;
  std::span<const std::uint64_t> addresses_;
  const Found* found_ = nullptr;
  std::vector<bool> known_;
  Dwarf_Die lines_{};             // the unit whose table of lines is used
  Dwarf_Files* files_ = nullptr;  // of the unit that is walked
  std::size_t files_count_ = 0;
  std::vector<Dwarf_Die> chain_;  // the function that is walked, and what is inlined, outermost first
  std::unordered_map<Dwarf_Off, std::string> names_;  // by the place of a function
};

}  // namespace cmt::symbols
