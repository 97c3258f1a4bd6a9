// Checks the layout of a thread's header, and changes the library's file, as thread_storage.h describes.
#include "cmttrace/attach/thread_storage.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "cmttrace/attach/attach_file.h"

namespace cmt::attach {
namespace {

/// A part of the file that is read and changed as a T. Does nothing if the file ends before.
template <class T>
std::optional<T> read_at(const std::string& file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

template <class T>
void write_at(std::string& file, std::uint64_t offset, const T& value) {
  if (offset <= file.size() && file.size() - offset >= sizeof value)
    std::memcpy(file.data() + offset, &value, sizeof value);
}

struct Segment {
  std::uint64_t at = 0;  ///< of its header in the file
  Elf64_Phdr header{};
};

std::vector<Segment> segments_of(const std::string& file) {
  std::vector<Segment> segments;
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  for (std::size_t i = 0; header && i < header->e_phnum; ++i) {
    const std::uint64_t at = header->e_phoff + i * sizeof(Elf64_Phdr);
    if (const auto segment = read_at<Elf64_Phdr>(file, at)) segments.push_back({at, *segment});
  }
  return segments;
}

const Segment* find_segment(const std::vector<Segment>& segments, std::uint32_t type) {
  const auto found = std::ranges::find(segments, type, [](const Segment& segment) { return segment.header.p_type; });
  return found == segments.end() ? nullptr : &*found;
}

/// Returns where an address of the library is in its file, or nullopt.
std::optional<std::uint64_t> offset_of(const std::vector<Segment>& segments, std::uint64_t address) {
  for (const Segment& segment : segments) {
    const Elf64_Phdr& header = segment.header;
    if (header.p_type == PT_LOAD && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
      return header.p_offset + (address - header.p_vaddr);
  }
  return std::nullopt;
}

std::map<std::int64_t, std::uint64_t> dynamic_of(const std::string& file, const Segment& segment) {
  std::map<std::int64_t, std::uint64_t> entries;
  for (std::uint64_t at = segment.header.p_offset;; at += sizeof(Elf64_Dyn)) {
    const auto entry = read_at<Elf64_Dyn>(file, at);
    if (!entry || entry->d_tag == DT_NULL) return entries;
    entries[entry->d_tag] = entry->d_un.d_val;
  }
}

/// A word that the loader would fill with the offset of a thread variable.
struct OffsetWord {
  std::uint64_t relocation = 0, word = 0;  ///< where both are in the file
  std::uint64_t variable = 0;              ///< its offset in the segment
};

bool is_of_thread_variables(std::uint32_t type) {
  return type == R_X86_64_TPOFF64 || type == R_X86_64_DTPMOD64 || type == R_X86_64_DTPOFF64 || type == R_X86_64_TLSDESC;
}

/// Returns nullopt if some word is of another kind, or of a variable that others see.
std::optional<std::vector<OffsetWord>> offset_words(const std::string& file, const std::vector<Segment>& segments) {
  const Segment* const dynamic = find_segment(segments, PT_DYNAMIC);
  if (dynamic == nullptr) return std::nullopt;
  auto entries = dynamic_of(file, *dynamic);
  const auto begin = offset_of(segments, entries[DT_RELA]);
  if (!begin) return std::nullopt;
  std::vector<OffsetWord> words;
  for (std::uint64_t at = *begin; at < *begin + entries[DT_RELASZ]; at += sizeof(Elf64_Rela)) {
    const auto relocation = read_at<Elf64_Rela>(file, at);
    if (!relocation) return std::nullopt;
    if (!is_of_thread_variables(ELF64_R_TYPE(relocation->r_info))) continue;
    const auto word = offset_of(segments, relocation->r_offset);
    if (relocation->r_info != ELF64_R_INFO(0, R_X86_64_TPOFF64) || !word) return std::nullopt;
    words.push_back({at, *word, static_cast<std::uint64_t>(relocation->r_addend)});
  }
  return words;
}

/// A library from glibc 2.25 on: the function came with it.
bool is_known_version(const remote_call::Target& target) {
  const remote_call::Module* const libc = target.libc();
  return libc != nullptr && remote_call::find_function(target.memory(), *libc, "explicit_bzero").has_value();
}

}  // namespace

bool has_thread_storage(const remote_call::Target& target, const remote_call::CallingThread& thread) {
  const auto head = target.memory().read<std::array<std::uint64_t, 3>>(thread.pointer);
  const auto room = target.memory().read<std::array<char, thread_storage_bytes>>(thread.pointer + thread_storage_at);
  const auto id = target.memory().read<std::uint32_t>(thread.pointer + thread_id_at);
  if (!head || !room || !id || !is_known_version(target)) return false;
  const std::string folder = process::path_of(target.pid(), "task/" + std::to_string(thread.tid));
  return (*head)[0] == thread.pointer && (*head)[2] == thread.pointer && *id != 0 && *id == own_number(folder) &&
         std::ranges::all_of(*room, [](char byte) { return byte == 0; });
}

bool move_thread_variables(std::string& library) {
  const std::vector<Segment> segments = segments_of(library);
  const Segment* const variables = find_segment(segments, PT_TLS);
  if (variables == nullptr) return false;
  Elf64_Phdr header = variables->header;
  const bool fits = header.p_filesz == 0 && header.p_memsz <= thread_storage_bytes && header.p_align <= 32;
  const auto words = offset_words(library, segments);
  if (!fits || !words) return false;
  for (const OffsetWord& word : *words) {
    write_at(library, word.word, thread_storage_at + word.variable);
    write_at(library, word.relocation + offsetof(Elf64_Rela, r_info), std::uint64_t{ELF64_R_INFO(0, R_X86_64_NONE)});
  }
  header.p_type = PT_NULL;
  write_at(library, variables->at, header);
  return true;
}

}  // namespace cmt::attach
