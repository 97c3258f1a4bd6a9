/// The program and the libraries that a process has loaded, with their symbols and build ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/process/smaps.h"
#include "toolkit/remote_call/remote_memory.h"

namespace cmt::remote_call {

struct Symbol {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

/// An ELF file that is loaded in a process. All is read from the process's memory: its files may be in another mount
/// namespace, or be gone, as after an upgrade of libc.
struct Module {
  std::string name;                  ///< as in /proc/PID/maps: a path, "[vdso]"
  std::uint64_t begin = 0, end = 0;  ///< of its segments
  std::uint64_t bias = 0;            ///< what is added to the file's addresses
  std::uint64_t dynamic = 0;         ///< address of its PT_DYNAMIC; 0: none
  std::uint64_t unwind_table = 0;    ///< address of its .eh_frame_hdr; 0: none

  bool contains(std::uint64_t address) const { return begin <= address && address < end; }
  /// "libc.so.6".
  std::string_view file_name() const;
};

/// Looks up a function that the module exports: its default version, or any. Returns nullopt if the module does not
/// export it, or has no DT_GNU_HASH.
std::optional<Symbol> find_function(const RemoteMemory& memory, const Module& module, std::string_view name);

/// Returns the build id in hexadecimal digits; empty if the module has none.
std::string build_id_of(const RemoteMemory& memory, const Module& module);
/// The same of a file that has been read.
std::string build_id_of(std::string_view file);

/// The mappings of a process, as in /proc/PID/maps. Throws std::system_error.
std::vector<process::Mapping> read_maps(int pid);

/// The ELF files that are loaded there, by address.
std::vector<Module> find_modules(const RemoteMemory& memory, const std::vector<process::Mapping>& maps);

}  // namespace cmt::remote_call
