// Opens modules through libdwfl, after a check that their files are those that were recorded.

#include "toolkit/symbols/module_file.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "cmt/error.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/symbols/debug_files.h"
#include "toolkit/symbols/demangle.h"
#include "toolkit/symbols/unwind_index.h"

namespace cmt::symbols {
namespace {

using process::Fd;

[[noreturn]] void throw_errno(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

/// A file of the kernel's code in this process, which is that in every process of this machine.
Fd open_vdso() {
  Fd file(memfd_create("vdso", MFD_CLOEXEC));
  const unsigned long at = getauxval(AT_SYSINFO_EHDR);
  if (file.get() < 0 || at == 0) throw FormatError("[vdso]", "this machine has none");
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(at);
  const std::size_t size = header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize;
  if (write(file.get(), header, size) != static_cast<ssize_t>(size)) throw_errno("[vdso]");
  return file;
}

/// The file of a module. Throws where it is gone, or is another one now.
Fd open_unchanged(const Module& module, std::optional<std::time_t> start, const std::string& root) {
  Fd file = module.path == "[vdso]" ? open_vdso() : files::open_regular_file(module.path, {.root = root});
  const std::string id = build_id_of(file.get(), module.path);
  struct stat status;
  if (module.build_id.empty() && module.path != "[vdso]" && start && fstat(file.get(), &status) == 0 &&
      status.st_mtime > *start) {
    throw FormatError(module.path, "is newer than the recording, and has no recorded build id to compare");
  }
  if (module.build_id.empty() || id == module.build_id) return file;
  throw FormatError(module.path, "has changed since the recording (build id " +
                                     (id.empty() ? "none" : build_id_text(id)) + ", recorded " +
                                     build_id_text(module.build_id) + ")");
}

Fd open_module(const Module& module, std::span<const std::string> directories, std::optional<std::time_t> start,
               const std::string& root) {
  try {
    return open_unchanged(module, start, root);
  } catch (const std::exception&) {
    Fd file = open_by_build_id(module.build_id, directories);
    if (file.get() < 0) throw;
    return file;
  }
}

/// Whether a line is of a function of the standard library that is inlined into another one. A table of lines states
/// only the former. Then all callers would have one line, which says less than their names.
bool is_of_inlined(const SourceFrame& place, std::string_view symbol) {
  if (place.file.find("/rustc") != place.file.npos) return true;
  if (place.file.find("/include/c++/") == place.file.npos) return false;
  if (!symbol.starts_with("_Z")) return true;
  const std::size_t scope = std::min(symbol.find_first_not_of("ZNK", 2), symbol.size());  // _ZNSt6vectorIiE5beginEv
  return !symbol.substr(scope).starts_with('S') && !symbol.substr(scope).starts_with("9__gnu_cxx");
}

/// How long the file is that holds the debug information.
std::uint64_t bytes_of(Dwarf* dwarf) {
  std::size_t bytes = 0;
  return elf_rawfile(dwarf_getelf(dwarf), &bytes) == nullptr ? 0 : bytes;
}

}  // namespace

struct ModuleFile::Handle {
  // DebugFiles looks in the directories. libdwfl's own search skips a path that is not absolute, and asks servers. It
  // asks none after a path that is there and cannot be searched.
  std::string search_path = ".";
  char* search_path_text = nullptr;
  std::optional<DebugFiles> files;
  Dwfl_Callbacks callbacks{};
  std::unique_ptr<Dwfl, void (*)(Dwfl*)> dwfl{nullptr, dwfl_end};
  Dwfl_Module* module = nullptr;
};

ModuleFile::ModuleFile(const Module& module, std::span<const std::string> debug_directories,
                       std::optional<std::time_t> start, const std::string& root)
    : path_(module.path), handle_(std::make_unique<Handle>()) {
  const Fd file = open_module(module, debug_directories, start, root);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw_errno(module.path);
  handle_->files.emplace(debug_directories, root, status).add_folder_of(file.get());
  handle_->search_path_text = handle_->search_path.data();
  handle_->callbacks = {.find_elf = dwfl_build_id_find_elf,
                        .find_debuginfo = DebugFiles::find,
                        .section_address = dwfl_offline_section_address,
                        .debuginfo_path = &handle_->search_path_text};
  handle_->dwfl.reset(dwfl_begin(&handle_->callbacks));
  const int own_fd = fcntl(file.get(), F_DUPFD_CLOEXEC, 0);  // libdwfl closes it, but not where it fails
  if (handle_->dwfl == nullptr || own_fd < 0) throw_errno(module.path);
  dwfl_report_begin(handle_->dwfl.get());
  handle_->module = dwfl_report_elf(handle_->dwfl.get(), module.path.c_str(), module.path.c_str(), own_fd, 0, true);
  if (handle_->module == nullptr) {
    close(own_fd);
    throw FormatError(module.path, dwfl_errmsg(-1));
  }
  dwfl_report_end(handle_->dwfl.get(), nullptr, nullptr);
  void** user_data = nullptr;
  dwfl_module_info(handle_->module, &user_data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  *user_data = &*handle_->files;
}

ModuleFile::~ModuleFile() = default;

/// The debug information; null: none.
Dwarf* ModuleFile::find_dwarf(std::uint64_t& bias) const {
  Dwarf* const dwarf = dwfl_module_getdwarf(handle_->module, &bias);
  return dwarf != nullptr && handle_->files->may_use(dwarf) ? dwarf : nullptr;
}

std::uint64_t ModuleFile::open_symbols() {
  if (!symbols_) symbols_.emplace(handle_->module);
  std::uint64_t bias = 0;
  Dwarf* const dwarf = find_dwarf(bias);
  return dwarf == nullptr ? 0 : bytes_of(dwarf);
}

void ModuleFile::place(std::vector<std::uint64_t>& addresses) const {
  Dwarf_Addr begin = 0, end = 0;
  dwfl_module_info(handle_->module, nullptr, &begin, &end, nullptr, nullptr, nullptr, nullptr);
  if (addresses.empty() || begin == 0 || addresses.back() >= end - begin) return;
  if (addresses.front() >= begin) throw FormatError(path_, "the log's addresses are in two places of it");
  for (std::uint64_t& address : addresses) address += begin;
}

void ModuleFile::look_up(std::span<const std::uint64_t> addresses, const DebugInfo::Found& found) {
  const std::uint64_t debug_bytes = open_symbols();
  const SymbolTable& symbols = *symbols_;
  std::vector<bool> known(addresses.size());
  std::vector<SourceFrame> places(addresses.size());  // of those without a function
  std::uint64_t bias = 0;
  Dwarf* const dwarf = find_dwarf(bias);
  if (dwarf != nullptr) {
    std::vector<std::uint64_t> unbiased(addresses.begin(), addresses.end());
    for (std::uint64_t& address : unbiased) address -= bias;
    DebugInfo info(dwarf, symbols, bias, debug_bytes, handle_->files->folders());
    info.look_up(unbiased, [&](std::size_t index, std::vector<SourceFrame>&& frames) {
      if (frames.size() == 1 && frames.front().function.empty()) {
        places[index] = std::move(frames.front());
        return;
      }
      known[index] = true;
      found(index, std::move(frames));
    });
  }
  Elf* const elf = dwfl_module_getelf(handle_->module, &bias);
  const UnwindIndex functions(elf);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (known[i]) continue;
    const char* const symbol = symbols.find(addresses[i]);
    const auto begin = symbol == nullptr ? functions.function_begin(addresses[i] - bias) : std::nullopt;
    SourceFrame& frame = places[i];
    if (symbol != nullptr && is_of_inlined(frame, symbol)) frame = {};
    if (symbol != nullptr) frame.function = demangled(symbol);
    if (begin) frame.function = nameless_function(path_, *begin + bias);
    if (!frame.function.empty() || frame.line != 0) found(i, {std::move(frame)});
  }
}

std::string ModuleFile::unread_debug_info() const {
  Dwarf_Addr bias = 0;
  Dwarf* const dwarf = dwfl_module_getdwarf(handle_->module, &bias);
  if (dwarf != nullptr && !has_zstd(dwarf_getelf(dwarf))) return {};
  const std::string& separate = handle_->files->with_zstd();
  if (separate.empty() && !has_zstd(dwfl_module_getelf(handle_->module, &bias))) return {};
  return (separate.empty() ? path_ : separate) +
         ": libelf cannot read its debug information, which is compressed with zstd; lines are not known (see objcopy "
         "--decompress-debug-sections)";
}

std::string nameless_function(std::string_view path, std::uint64_t begin) {
  std::array<char, 32> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), begin, 16).ptr;
  return std::string(path.substr(path.rfind('/') + 1)) + "+0x" + std::string(digits.data(), end);
}

bool is_nameless_function(std::string_view path, std::string_view name) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return name.starts_with(file) && name.substr(file.size()).starts_with("+0x");
}

std::string build_id_text(std::string_view build_id) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const char byte : build_id) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace cmt::symbols
