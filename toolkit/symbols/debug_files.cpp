// Tries the paths that elfutils' own search tries, and asks a server of $DEBUGINFOD_URLS last.

#include "toolkit/symbols/debug_files.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <zlib.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cmt/error.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/symbols/module_file.h"

namespace cmt::symbols {
namespace {

using process::Fd;
using ElfFile = std::unique_ptr<Elf, int (*)(Elf*)>;

ElfFile open_elf(int fd) {
  elf_version(EV_CURRENT);
  ElfFile elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr), elf_end);
  if (elf != nullptr && elf_kind(elf.get()) != ELF_K_ELF) elf.reset();
  return elf;
}

std::string id_text(const void* id, ssize_t size) {
  return size <= 0 ? "" : std::string(static_cast<const char*>(id), static_cast<std::size_t>(size));
}

std::optional<std::uint32_t> checksum_of(int fd) {
  const ElfFile elf = open_elf(fd);
  std::size_t size = 0;
  const char* const bytes = elf == nullptr ? nullptr : elf_rawfile(elf.get(), &size);
  if (bytes == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes), size));
}

/// A file that libdwfl takes over.
int given_away(const Fd& file) { return fcntl(file.get(), F_DUPFD_CLOEXEC, 0); }

std::string path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? "." : path.substr(0, slash));
}

}  // namespace

std::string build_id_of(int fd, const std::string& path) {
  const ElfFile elf = open_elf(fd);
  if (elf == nullptr) throw FormatError(path, "is no ELF file");
  const void* id = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf.get(), &id);
  return id_text(id, size);
}

Elf_Scn* find_section(Elf* elf, std::string_view name) {
  std::size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    const char* const text =
        gelf_getshdr(section, &header) == nullptr ? nullptr : elf_strptr(elf, names, header.sh_name);
    if (text != nullptr && name == text) return section;
  }
  return nullptr;
}

bool has_zstd(Elf* elf) {
  constexpr GElf_Word zstd = 2;  // ELFCOMPRESS_ZSTD, which older elf.h lack
  for (const char* const name : {".debug_info", ".debug_line"}) {
    Elf_Scn* const section = find_section(elf, name);
    GElf_Chdr header;
    if (section != nullptr && gelf_getchdr(section, &header) != nullptr && header.ch_type == zstd) return true;
  }
  return false;
}

Fd open_by_build_id(std::string_view build_id, std::span<const std::string> directories) {
  if (build_id.size() < 2) return {};
  const std::string digits = build_id_text(build_id);
  for (const std::string& directory : directories) {
    const std::string path = directory + "/.build-id/" + digits.substr(0, 2) + "/" + digits.substr(2) + ".debug";
    try {
      Fd file = files::open_regular_file(path);
      if (build_id_of(file.get(), path) == build_id) return file;
    } catch (const std::exception&) {
      // The next directory may have it.
    }
  }
  return {};
}

int DebugFiles::find(Dwfl_Module* module, void** user_data, const char* name, Dwarf_Addr base, const char* file_name,
                     const char* link, GElf_Word link_checksum, char** found_name) try {
  auto& files = *static_cast<DebugFiles*>(*user_data);
  const unsigned char* id = nullptr;
  GElf_Addr id_address = 0;
  Wanted wanted;
  if (const int size = dwfl_module_build_id(module, &id, &id_address); size > 0) wanted.build_id = id_text(id, size);
  if (link != nullptr && link_checksum != 0) wanted.checksum = link_checksum;
  wanted.is_alternate = link != nullptr && link_checksum == 0;  // as libdwfl asks for it
  Fd file = files.find_file(wanted, file_name == nullptr ? "" : file_name, link);
  if (file.get() < 0)
    file = Fd(dwfl_standard_find_debuginfo(module, user_data, name, base, nullptr, nullptr, 0, found_name));
  if (file.get() < 0) return -1;
  if (wanted.is_alternate) {
    files.alternate_id_ = build_id_of(file.get(), link);
  } else {
    files.add_folder_of(file.get());
    if (has_zstd(open_elf(file.get()).get())) files.with_zstd_ = path_of(file.get());
  }
  return given_away(file);
} catch (const std::exception&) {
  return -1;
}

Fd DebugFiles::find_file(const Wanted& wanted, std::string_view file_name, const char* link) const {
  if (!wanted.is_alternate) {
    Fd file = open_by_build_id(wanted.build_id, directories_);
    if (file.get() >= 0) return file;
  }
  if (file_name.empty()) return {};
  const std::string base(file_name.substr(file_name.rfind('/') + 1));
  const std::string name = link == nullptr ? base + ".debug" : link;
  if (name.starts_with("/")) return open_if(wanted, name, "");
  const std::string folder = folder_of(file_name);
  for (const char* const below : {"/", "/.debug/"}) {
    Fd file = open_if(wanted, folder + below + name, root_);
    if (file.get() >= 0) return file;
  }
  for (const std::string& directory : directories_) {
    for (std::string_view rest = folder; !rest.empty(); rest.remove_prefix(std::min(rest.find('/', 1), rest.size()))) {
      Fd file = open_if(wanted, directory + (rest.starts_with("/") ? "" : "/") + std::string(rest) + "/" + name, "");
      if (file.get() >= 0) return file;
    }
    Fd file = open_if(wanted, directory + "/" + name, "");
    if (file.get() >= 0) return file;
  }
  return {};
}

/// Opens a file if it is the wanted one. None: -1.
Fd DebugFiles::open_if(const Wanted& wanted, const std::string& path, const std::string& root) const try {
  Fd file = files::open_regular_file(path, {.root = root});
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || (status.st_dev == module_.st_dev && status.st_ino == module_.st_ino))
    return {};
  const std::string id = build_id_of(file.get(), path);
  if (wanted.is_alternate) return file;
  const bool is_wanted =
      wanted.build_id.empty() ? wanted.checksum && checksum_of(file.get()) == wanted.checksum : id == wanted.build_id;
  return is_wanted ? std::move(file) : Fd();
} catch (const std::exception&) {
  return {};
}

bool DebugFiles::may_use(Dwarf* dwarf) const {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
  return size <= 0 || id_text(id, size) == alternate_id_;
}

void DebugFiles::add_folder_of(int fd) {
  const std::string path = path_of(fd);
  if (!path.empty()) folders_.push_back(folder_of(path));
}

}  // namespace cmt::symbols
