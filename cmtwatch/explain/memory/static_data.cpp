// Reads the ELF head of each module, which is on its first page.
#include "cmtwatch/explain/memory/static_data.h"

#include <elf.h>

#include <cstring>

namespace cmt::watch::explain {
namespace {

void add_data_of(AddressSpace& memory, std::uint64_t module, std::vector<Range>& found) {
  const auto head = memory.read<Elf64_Ehdr>(module);
  constexpr unsigned segments_max = 64;
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return;
  if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phnum > segments_max || head->e_phoff >= page_bytes) return;
  std::optional<std::uint64_t> distance;  // from addresses in the file
  for (std::uint64_t i = 0; i < head->e_phnum; ++i) {
    const auto segment = memory.read<Elf64_Phdr>(module + head->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_LOAD) continue;
    if (!distance) distance = module - page_begin(segment->p_vaddr);
    const std::uint64_t begin = *distance + segment->p_vaddr;
    const Range range{page_end(begin + segment->p_filesz), page_end(begin + segment->p_memsz)};
    if (range.begin < range.end && range.begin > module) found.push_back(range);
  }
}

}  // namespace

std::vector<Range> find_static_data(AddressSpace& memory) {
  std::vector<Range> found;
  for (const process::Mapping& mapping : memory.mappings()) {
    if (mapping.offset == 0 && mapping.name.starts_with("/") && mapping.permissions[0] == 'r')
      add_data_of(memory, mapping.begin, found);
  }
  return found;
}

}  // namespace cmt::watch::explain
