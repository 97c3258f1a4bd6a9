// Gives the reader of .eh_frame (preload/cfi) the segments of a file by their addresses.
#include "toolkit/symbols/unwind_index.h"

#include <gelf.h>

namespace cmt::symbols {

UnwindIndex::UnwindIndex(Elf* elf) {
  std::size_t image_bytes = 0, headers = 0;
  const char* const image = elf == nullptr ? nullptr : elf_rawfile(elf, &image_bytes);
  if (image == nullptr || elf_getphdrnum(elf, &headers) != 0) return;
  for (std::size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_offset > image_bytes || header.p_filesz > image_bytes - header.p_offset) continue;
    if (header.p_type == PT_LOAD)
      segments_.push_back(
          {header.p_vaddr, {reinterpret_cast<const std::uint8_t*>(image) + header.p_offset, header.p_filesz}});
    if (header.p_type == PT_GNU_EH_FRAME) header_ = header.p_vaddr;
  }
}

std::size_t UnwindIndex::bytes_from(const void* index, std::uint64_t address, const std::uint8_t** bytes) {
  for (const Segment& segment : static_cast<const UnwindIndex*>(index)->segments_) {
    const std::uint64_t offset = address - segment.address;
    if (offset >= segment.bytes.size()) continue;
    *bytes = segment.bytes.data() + offset;
    return segment.bytes.size() - offset;
  }
  return 0;
}

std::optional<std::uint64_t> UnwindIndex::function_begin(std::uint64_t address) const {
  const CfiTables tables{header_, bytes_from, this};
  CfiFunction function;
  return cfi_find_function(&tables, address, &function) ? std::optional(function.begin) : std::nullopt;
}

}  // namespace cmt::symbols
