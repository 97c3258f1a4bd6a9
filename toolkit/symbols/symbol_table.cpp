// Sorts symbols by address, and chooses one name where several symbols begin at one address.

#include "toolkit/symbols/symbol_table.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>

namespace cmt::symbols {
namespace {

constexpr int unsized_rank = 100;  // a symbol without a size is worse than any with one

/// Whether a section holds code, and where it ends.
struct SectionFacts {
  bool is_code = false;
  std::uint64_t end = 0;
};

SectionFacts section_facts(Elf* elf, GElf_Word index, std::uint64_t bias) {
  GElf_Shdr header;
  Elf_Scn* const section = elf == nullptr ? nullptr : elf_getscn(elf, index);
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return {};
  return {.is_code = (header.sh_flags & SHF_EXECINSTR) != 0, .end = header.sh_addr + header.sh_size + bias};
}

int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  const int underscores = static_cast<int>(std::min<std::size_t>(std::strspn(name, "_"), 9));
  return (binding == STB_GLOBAL ? 0
          : binding == STB_WEAK ? 10
                                : 20) +
         (std::strncmp(name, "_Z", 2) == 0 ? 0 : underscores);
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  if (count <= 0) return;
  symbols_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) add_symbol(module, i);
  sort_and_bound();
}

void SymbolTable::add_symbol(Dwfl_Module* module, int index) {
  GElf_Sym symbol;
  GElf_Addr address = 0;
  GElf_Word section = SHN_UNDEF;
  Elf* elf = nullptr;
  Dwarf_Addr bias = 0;
  const char* const name = dwfl_module_getsym_info(module, index, &symbol, &address, &section, &elf, &bias);
  if (name == nullptr || *name == '\0' || section == SHN_UNDEF) return;
  const int type = GELF_ST_TYPE(symbol.st_info);
  if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) return;
  if (symbol.st_size != 0 && type != STT_NOTYPE) {
    const std::uint64_t end = address + symbol.st_size;
    if (end > address) symbols_.push_back({address, end, name, rank_of(symbol, name)});
    return;
  }
  const SectionFacts facts = section_facts(elf, section, bias);
  if (!facts.is_code || facts.end <= address) return;
  const std::uint64_t end = symbol.st_size == 0 ? facts.end : address + symbol.st_size;
  const int rank = rank_of(symbol, name) + (symbol.st_size == 0 ? unsized_rank : 0);
  if (end > address) symbols_.push_back({address, end, name, rank});
}

void SymbolTable::sort_and_bound() {
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.rank != b.rank) return a.rank < b.rank;
    const std::size_t a_size = std::strlen(a.name), b_size = std::strlen(b.name);
    return a_size != b_size ? a_size < b_size : std::strcmp(a.name, b.name) < 0;
  });
  const auto same_begin = [](const Symbol& a, const Symbol& b) { return a.begin == b.begin; };
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end(), same_begin), symbols_.end());
  ends_so_far_.reserve(symbols_.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    Symbol& symbol = symbols_[i];
    const bool is_unsized = symbol.rank >= unsized_rank;
    if (is_unsized && i + 1 < symbols_.size()) symbol.end = std::min(symbol.end, symbols_[i + 1].begin);
    if (is_unsized && symbol.begin < end) symbol.end = symbol.begin;  // a label within a function
    ends_so_far_.push_back(end = std::max(end, symbol.end));
  }
  assert(ends_so_far_.size() == symbols_.size());
}

const char* SymbolTable::find(std::uint64_t address) const {
  const auto after = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                                      [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.begin; });
  constexpr int steps_max = 1024;  // a damaged table may have symbols that span all others
  auto index = static_cast<std::size_t>(after - symbols_.begin());
  for (int step = 0; index > 0 && step < steps_max && ends_so_far_[index - 1] > address; ++step) {
    if (symbols_[--index].end > address) return symbols_[index].name;
  }
  return nullptr;
}

}  // namespace cmt::symbols
