/// Functions by the symbol tables of a module, where it has no debug information.
#pragma once

#include <cstdint>
#include <vector>

struct Dwfl_Module;

namespace cmt::symbols {

/// The functions of a module by its symbol tables: .symtab of the file or of its separate debug file, else .dynsym.
/// Addresses are those of the file.
class SymbolTable {
 public:
  /// Borrows `module`.
  explicit SymbolTable(Dwfl_Module* module);

  /// The symbol, as it is mangled, of the function that an address is in. Null if the address is in none. A function
  /// without a stated size, as those of assembly can be, extends to the next one. If a function has several names, the
  /// global one is taken, then the one with fewer underscores before it, then the shorter one.
  const char* find(std::uint64_t address) const;

  bool empty() const { return symbols_.empty(); }

 private:
  struct Symbol {
    std::uint64_t begin;
    std::uint64_t end;
    const char* name;
    int rank;  ///< the smaller the better
  };

  void add_symbol(Dwfl_Module* module, int index);
  void sort_and_bound();

  std::vector<Symbol> symbols_;             // by begin, one for each
  std::vector<std::uint64_t> ends_so_far_;  // the greatest end of the symbols up to this one
};

}  // namespace cmt::symbols
