/// One program or library, opened to name addresses in it. Its file may have changed since the recording.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmt/stacks.h"
#include "toolkit/symbols/debug_info.h"
#include "toolkit/symbols/symbol_table.h"

namespace cmt::symbols {

/// A program or library that is open for its symbols and its debug information. The latter is in the file itself or in
/// a separate one. A separate file is found by build id or name, in directories or on a server of $DEBUGINFOD_URLS. A
/// file with another build id than the recorded one is an error.
class ModuleFile {
 public:
  /// Looks for separate debug files in `debug_directories`. Refuses a module without a build id whose file is newer
  /// than `start`, the recording's. `root`: as in NamingOptions. Throws FormatError and std::system_error.
  ModuleFile(const Module& module, std::span<const std::string> debug_directories,
             std::optional<std::time_t> start = std::nullopt, const std::string& root = {});
  ~ModuleFile();
  ModuleFile(const ModuleFile&) = delete;
  ModuleFile& operator=(const ModuleFile&) = delete;

  /// Reads the symbols and finds the debug information, which otherwise look_up() does. Returns the size of the file
  /// that contains the debug information.
  std::uint64_t open_symbols();

  /// Adds to the addresses of a log, which rise, what it has taken off: the address at which the file begins by its own
  /// program header. Adds nothing if they are in the file as they are. Throws FormatError if both can be.
  void place(std::vector<std::uint64_t>& addresses) const;

  /// Calls `found` with the number of each address that a function or a table of lines has. Addresses are the file's,
  /// and rise. A function without a symbol has a name by nameless_function().
  void look_up(std::span<const std::uint64_t> addresses, const DebugInfo::Found& found);

  /// States why debug information that is there could not be read. Empty: it was read, or there is none.
  std::string unread_debug_info() const;

 private:
  struct Handle;

  Dwarf* find_dwarf(std::uint64_t& bias) const;

  std::string path_;
  std::unique_ptr<Handle> handle_;
  std::optional<SymbolTable> symbols_;
};

/// The name of a function that has no symbol: its file and its begin in there, "cc1plus+0x84e3f0".
std::string nameless_function(std::string_view path, std::uint64_t begin);
bool is_nameless_function(std::string_view path, std::string_view name);

/// The bytes of a build id as tools write them: "68b310b9".
std::string build_id_text(std::string_view build_id);

}  // namespace cmt::symbols
