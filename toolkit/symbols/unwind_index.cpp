#include "toolkit/symbols/unwind_index.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>

namespace cmt::symbols {
namespace {

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

/// Encodings of pointers in .eh_frame_hdr: 4 bytes, signed and relative to the section, or unsigned.
constexpr unsigned char encoding_of_table = 0x3b, encoding_of_count = 0x03, encoding_of_frames = 0x1b;
constexpr std::size_t header_bytes = 12, entry_bytes = 8, description_bytes = 16;

}  // namespace

UnwindIndex::UnwindIndex(Elf* elf) {
  std::size_t image_bytes = 0, headers = 0;
  const char* const image = elf == nullptr ? nullptr : elf_rawfile(elf, &image_bytes);
  if (image == nullptr || elf_getphdrnum(elf, &headers) != 0) return;
  std::uint64_t table = 0;
  std::string_view table_bytes;
  for (std::size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_offset > image_bytes || header.p_filesz > image_bytes - header.p_offset) continue;
    const std::string_view bytes(image + header.p_offset, header.p_filesz);
    if (header.p_type == PT_LOAD) segments_.push_back({header.p_vaddr, bytes});
    if (header.p_type != PT_GNU_EH_FRAME) continue;
    table = header.p_vaddr;
    table_bytes = bytes;
  }
  read_table(table, table_bytes);
}

void UnwindIndex::read_table(std::uint64_t table, std::string_view bytes) {
  if (bytes.size() < header_bytes || bytes[0] != 1 || static_cast<unsigned char>(bytes[1]) != encoding_of_frames ||
      static_cast<unsigned char>(bytes[2]) != encoding_of_count ||
      static_cast<unsigned char>(bytes[3]) != encoding_of_table)
    return;
  const std::size_t count =
      std::min<std::size_t>(number_at<std::uint32_t>(bytes, 8), (bytes.size() - header_bytes) / entry_bytes);
  entries_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = header_bytes + i * entry_bytes;
    const auto begin = static_cast<std::uint64_t>(number_at<std::int32_t>(bytes, at));
    const auto description = static_cast<std::uint64_t>(number_at<std::int32_t>(bytes, at + 4));
    entries_.push_back({table + begin, table + description});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

/// Bytes of the file by their address; empty: it does not have them.
std::string_view UnwindIndex::bytes_at(std::uint64_t address, std::size_t size) const {
  for (const Segment& segment : segments_) {
    const std::uint64_t offset = address - segment.address;
    if (offset < segment.bytes.size() && size <= segment.bytes.size() - offset)
      return segment.bytes.substr(offset, size);
  }
  return {};
}

std::optional<std::uint64_t> UnwindIndex::function_begin(std::uint64_t address) const {
  const auto after = std::upper_bound(entries_.begin(), entries_.end(), address,
                                      [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.begin; });
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *(after - 1);
  // Of the description: its size, which description is the common one, where the function begins, and how long it is.
  const std::string_view bytes = bytes_at(entry.description, description_bytes);
  if (bytes.empty()) return std::nullopt;
  const auto relative_begin = static_cast<std::uint64_t>(number_at<std::int32_t>(bytes, 8));
  const bool is_usual_form = entry.description + 8 + relative_begin == entry.begin;
  if (!is_usual_form || address - entry.begin >= number_at<std::uint32_t>(bytes, 12)) return std::nullopt;
  return entry.begin;
}

}  // namespace cmt::symbols
