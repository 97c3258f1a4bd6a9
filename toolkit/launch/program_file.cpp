// Reads a program's ELF headers and symbols, as far as its bytes allow.

#include "toolkit/launch/program_file.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"

namespace cmt::launch {
namespace {

/// Symbols of a larger table are not looked at: a program with so many would start a second later.
constexpr std::uint64_t symbols_bytes_max = 16 << 20;

#if defined(__x86_64__)
constexpr unsigned own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned own_machine = EM_AARCH64;
#else
constexpr unsigned own_machine = EM_NONE;
#endif

/// Allocators are linked into programs under names of their own: jemalloc (also in Rust), mimalloc, tcmalloc, rpmalloc
/// and snmalloc.
constexpr std::array<std::string_view, 6> allocator_names{"je_malloc", "_rjem_malloc", "mi_malloc",
                                                          "tc_malloc", "rpmalloc",     "sn_malloc"};

/// The function that a program calls first if it was built with -fsanitize=..., be the sanitizer inside of it or a
/// library. A sanitizer has a malloc of its own. gcc's for addresses ends the program if another library is before it.
constexpr std::array<std::array<std::string_view, 2>, 4> sanitizer_names{
    {{"__asan_init", "address"}, {"__hwasan_init", "hwaddress"}, {"__msan_init", "memory"}, {"__tsan_init", "thread"}}};

process::Fd open_program(const std::string& path) {
  try {
    return files::open_regular_file(path);
  } catch (const std::exception&) {
    return {};
  }
}

/// A file in memory, every access checked against its end.
class Bytes {
 public:
  /// Empty where the path is no regular file, or cannot be read.
  explicit Bytes(const std::string& path) {
    const process::Fd fd = open_program(path);
    struct stat status {};
    if (fd.get() < 0 || fstat(fd.get(), &status) != 0 || status.st_size == 0) return;
    void* const memory = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (memory != MAP_FAILED) bytes_ = {static_cast<const char*>(memory), static_cast<std::size_t>(status.st_size)};
  }
  ~Bytes() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  template <class Part>
  std::optional<Part> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(Part)) return std::nullopt;
    Part part;
    std::memcpy(&part, bytes_.data() + offset, sizeof part);
    return part;
  }
  /// The text up to a zero byte, within so many bytes from `offset`.
  std::string_view text(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size()) return {};
    const std::string_view part = bytes_.substr(offset, size);
    return part.substr(0, part.find('\0'));
  }

 private:
  std::string_view bytes_;
};

void read_symbols(const Bytes& file, const Elf64_Shdr& symbols, const Elf64_Shdr& names, ProgramFile& program) {
  if (symbols.sh_size > symbols_bytes_max) return;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = file.at<Elf64_Sym>(symbols.sh_offset + at);
    if (!symbol) return;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_name >= names.sh_size) continue;
    const std::string_view name = file.text(names.sh_offset + symbol->st_name, 16);
    for (const auto& [first_call, sanitizer] : sanitizer_names) {
      if (symbols.sh_type == SHT_DYNSYM && name == first_call) program.sanitizer = sanitizer;
    }
    if (symbol->st_shndx == SHN_UNDEF) continue;
    if (symbols.sh_type == SHT_DYNSYM && name == "malloc") program.exports_malloc = true;
    if (program.allocator.empty() &&
        std::find(allocator_names.begin(), allocator_names.end(), name) != allocator_names.end())
      program.allocator = name;
  }
}

}  // namespace

ProgramFile read_program_file(const std::string& path) {
  ProgramFile program;
  const Bytes file(path);
  if (file.text(0, SELFMAG) != ELFMAG) return program;
  const auto identity = file.at<std::array<unsigned char, EI_NIDENT>>(0);
  program.is_elf = identity.has_value();
  const auto header = file.at<Elf64_Ehdr>(0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) return program;
  program.is_64_bit = true;
  program.is_for_us = header->e_machine == own_machine;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = file.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (segment && segment->p_type == PT_INTERP) program.interpreter = file.text(segment->p_offset, segment->p_filesz);
  }
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = file.at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || (section->sh_type != SHT_DYNSYM && section->sh_type != SHT_SYMTAB)) continue;
    const auto names = file.at<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (names) read_symbols(file, *section, *names, program);
  }
  return program;
}

}  // namespace cmt::launch
