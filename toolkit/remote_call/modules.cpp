// A module is a mapping of a file at offset 0 that begins with an ELF header. Code of the file must be mapped in the
// range of its program headers: a debugger, for instance, maps ELF files as data.
//
// Functions are looked up as the dynamic loader does it, by DT_GNU_HASH. Its parts are a Bloom filter (not read here),
// buckets, and chains of hash values parallel to the symbols ("How to Write Shared Libraries", Drepper, 1.5.3).

#include "toolkit/remote_call/modules.h"

#include <elf.h>

#include <algorithm>

namespace cmt::remote_call {
namespace {

constexpr std::size_t segments_max = 128, entries_max = 512, chain_max = 100'000, notes_bytes_max = 1 << 16;

std::string in_digits(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

/// Returns the build id in a series of notes, or an empty text. A note has the lengths of its name and its content, a
/// type, and then both, padded to four bytes.
std::string build_id_in(std::string_view notes) {
  Elf64_Nhdr note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t name = (std::size_t{note.n_namesz} + 3) & ~std::size_t{3};
    const std::size_t content = (std::size_t{note.n_descsz} + 3) & ~std::size_t{3};
    if (notes.size() - sizeof note < name || notes.size() - sizeof note - name < note.n_descsz) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof note, note.n_namesz) == std::string_view("GNU\0", 4))
      return in_digits(notes.substr(sizeof note + name, note.n_descsz));
    notes.remove_prefix(std::min(notes.size(), sizeof note + name + content));
  }
  return {};
}

bool is_elf(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= segments_max;
}

/// Returns an empty list if no ELF file is mapped there.
std::vector<Elf64_Phdr> read_segments(const RemoteMemory& memory, std::uint64_t begin) {
  const auto header = memory.read_kept<Elf64_Ehdr>(begin);
  if (!header || !is_elf(*header)) return {};
  std::vector<Elf64_Phdr> segments(header->e_phnum);
  const bool is_read = memory.read_kept(begin + header->e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr));
  return is_read ? segments : std::vector<Elf64_Phdr>();
}

/// The module whose first page is `first`.
std::optional<Module> read_module(const RemoteMemory& memory, const process::Mapping& first) {
  const std::vector<Elf64_Phdr> segments = read_segments(memory, first.begin);
  Module module{.name = first.name};
  std::uint64_t low = UINT64_MAX, high = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    low = std::min(low, segment.p_vaddr & ~std::uint64_t{4095});
    high = std::max(high, segment.p_vaddr + segment.p_memsz);
  }
  if (low >= high) return std::nullopt;
  module.bias = first.begin - low;
  module.begin = first.begin;
  module.end = module.bias + high;
  for (const Elf64_Phdr& segment : segments) {
    const std::uint64_t address = module.bias + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) module.dynamic = address;
    if (segment.p_type == PT_GNU_EH_FRAME) module.unwind_table = address;
  }
  return module;
}

/// The part of a module's dynamic section that find_function() needs. The loader has added the bias to the addresses of
/// some modules there, but not of the vdso.
struct DynamicTables {
  std::uint64_t symbols = 0, names = 0, hash = 0, versions = 0;

  DynamicTables(const RemoteMemory& memory, const Module& module) {
    for (std::size_t i = 0; module.dynamic != 0 && i < entries_max; ++i) {
      const auto entry = memory.read_kept<Elf64_Dyn>(module.dynamic + i * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) return;
      const std::uint64_t value = entry->d_un.d_ptr;
      const std::uint64_t address = value < module.begin ? value + module.bias : value;
      if (entry->d_tag == DT_SYMTAB) symbols = address;
      if (entry->d_tag == DT_STRTAB) names = address;
      if (entry->d_tag == DT_GNU_HASH) hash = address;
      if (entry->d_tag == DT_VERSYM) versions = address;
    }
  }
};

std::uint32_t hash_of(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const unsigned char c : name) hash = hash * 33 + c;
  return hash;
}

bool is_function(const Elf64_Sym& symbol) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
}

}  // namespace

std::string_view Module::file_name() const { return process::file_name_of(name); }

std::optional<Symbol> find_function(const RemoteMemory& memory, const Module& module, std::string_view name) {
  const DynamicTables tables(memory, module);
  if (tables.symbols == 0 || tables.names == 0 || tables.hash == 0) return std::nullopt;
  struct {
    std::uint32_t buckets, first, bloom_words, bloom_shift;
  } header{};
  if (!memory.read_kept(tables.hash, &header, sizeof header) || header.buckets == 0) return std::nullopt;
  const std::uint32_t hash = hash_of(name);
  const std::uint64_t buckets = tables.hash + sizeof header + header.bloom_words * std::uint64_t{8};
  const auto begin = memory.read_kept<std::uint32_t>(buckets + hash % header.buckets * std::uint64_t{4});
  if (!begin || *begin < header.first) return std::nullopt;
  const std::uint64_t chains = buckets + header.buckets * std::uint64_t{4};
  std::optional<Symbol> found;
  for (std::uint64_t i = *begin; i < *begin + chain_max; ++i) {
    const auto value = memory.read_kept<std::uint32_t>(chains + (i - header.first) * 4);
    if (!value) break;
    const auto symbol = memory.read_kept<Elf64_Sym>(tables.symbols + i * sizeof(Elf64_Sym));
    if ((*value | 1) == (hash | 1) && symbol && is_function(*symbol) &&
        memory.read_text(tables.names + symbol->st_name) == name) {
      found = Symbol{module.bias + symbol->st_value, symbol->st_size};
      constexpr std::uint16_t is_old_version = 0x8000;
      const auto version = memory.read_kept<std::uint16_t>(tables.versions + i * 2);
      if (tables.versions == 0 || !version || (*version & is_old_version) == 0) break;
    }
    if ((*value & 1) != 0) break;
  }
  return found;
}

std::string build_id_of(const RemoteMemory& memory, const Module& module) {
  for (const Elf64_Phdr& segment : read_segments(memory, module.begin)) {
    if (segment.p_type != PT_NOTE || segment.p_memsz > notes_bytes_max) continue;
    std::string notes(segment.p_memsz, '\0');
    if (!memory.read_kept(module.bias + segment.p_vaddr, notes.data(), notes.size())) continue;
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return {};
}

std::string build_id_of(std::string_view file) {
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return {};
  std::memcpy(&header, file.data(), sizeof header);
  if (!is_elf(header)) return {};
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const std::uint64_t at = header.e_phoff + i * sizeof segment;
    if (at > file.size() || file.size() - at < sizeof segment) return {};
    std::memcpy(&segment, file.data() + at, sizeof segment);
    if (segment.p_type != PT_NOTE || segment.p_offset > file.size()) continue;
    if (std::string id = build_id_in(file.substr(segment.p_offset, segment.p_filesz)); !id.empty()) return id;
  }
  return {};
}

std::vector<process::Mapping> read_maps(int pid) {
  return process::parse_smaps(process::read_file(process::path_of(pid, "maps")), "maps");
}

std::vector<Module> find_modules(const RemoteMemory& memory, const std::vector<process::Mapping>& maps) {
  std::vector<Module> modules;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const process::Mapping& first = maps[i];
    const bool may_begin = first.offset == 0 && !first.name.empty() && first.permissions[0] == 'r';
    if (!may_begin || (first.name[0] == '[' && first.name != "[vdso]")) continue;
    const auto module = read_module(memory, first);
    if (!module) continue;
    bool has_code = false;
    for (std::size_t k = i; k < maps.size() && maps[k].begin < module->end; ++k)
      has_code = has_code || (maps[k].name == first.name && maps[k].permissions[2] == 'x');
    if (has_code) modules.push_back(*module);
  }
  return modules;
}

}  // namespace cmt::remote_call
