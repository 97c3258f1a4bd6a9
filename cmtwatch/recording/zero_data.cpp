// Finds the end of .bss from the program headers of the mapped file.
#include "cmtwatch/recording/zero_data.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "toolkit/files/regular_file.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using process::Mapping;

/// Opens the file of a mapping: the mapped one if we may see it, else the one that now has its name.
process::Fd open_mapped(const Mapping& mapping, int pid, const std::string& root) {
  const std::string range = output::hex(mapping.begin) + "-" + output::hex(mapping.end);
  process::Fd file(open(process::path_of(pid, "map_files/" + range, root).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() >= 0 || mapping.name.ends_with(" (deleted)")) return file;
  try {
    return files::open_regular_file(process::path_of(pid, "root" + mapping.name, root));
  } catch (const std::exception&) {
    return {};  // the name is gone, or is no regular file now
  }
}

/// Returns the loaded segments of a 64-bit file; none if it has another form.
std::vector<Elf64_Phdr> loaded_segments(int fd) {
  constexpr std::size_t segments_max = 256;
  Elf64_Ehdr header{};
  if (pread(fd, &header, sizeof header, 0) != sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > segments_max)
    return {};
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  const std::size_t bytes = segments.size() * sizeof segments[0];
  if (pread(fd, segments.data(), bytes, static_cast<off_t>(header.e_phoff)) != static_cast<ssize_t>(bytes)) return {};
  std::erase_if(segments, [](const Elf64_Phdr& segment) { return segment.p_type != PT_LOAD; });
  return segments;
}

std::uint64_t page_up(std::uint64_t address) {
  const std::uint64_t page = process::page_bytes();
  return (address + page - 1) / page * page;
}

}  // namespace

std::uint64_t zero_data_bytes(const Mapping& before, const Mapping& mapping, int pid, const std::string& root) {
  const bool can_be = mapping.permissions.ends_with('p') && (mapping.name.empty() || mapping.name == "[heap]");
  if (!can_be || before.end != mapping.begin || !before.name.starts_with("/")) return 0;
  const process::Fd file = open_mapped(before, pid, root);
  const std::vector<Elf64_Phdr> segments = file.get() < 0 ? std::vector<Elf64_Phdr>() : loaded_segments(file.get());
  for (const Elf64_Phdr& mapped : segments) {
    // The mapping before must be of a single segment; otherwise its end is not the end of that segment's data.
    const std::uint64_t loaded_at = before.begin - before.offset + mapped.p_offset - mapped.p_vaddr;
    for (const Elf64_Phdr& segment : segments) {
      const std::uint64_t begin = page_up(loaded_at + segment.p_vaddr + segment.p_filesz);
      const std::uint64_t end = page_up(loaded_at + segment.p_vaddr + segment.p_memsz);
      if (begin == mapping.begin && end > begin) return std::min(end, mapping.end) - begin;
    }
  }
  return 0;
}

}  // namespace cmt::watch
