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

/// A program or library that is open for its symbols, and its debug information where there is any: in the file itself,
/// or in a separate file found by its build id or name, in the directories for such files or from a server that
/// $DEBUGINFOD_URLS names. Only of the file that was recorded: another build id is an error.
class ModuleFile {
 public:
  /// Looks for separate debug files in `debug_directories`. A module without a build id is not taken where its file is
  /// newer than `start`, the recording's. `root`: as in NamingOptions. Throws FormatError and std::system_error.
  ModuleFile(const Module& module, std::span<const std::string> debug_directories,
             std::optional<std::time_t> start = std::nullopt, const std::string& root = {});
  ~ModuleFile();
  ModuleFile(const ModuleFile&) = delete;
  ModuleFile& operator=(const ModuleFile&) = delete;

  /// Reads what look_up() needs first, which otherwise reads it itself. Returns how long the file is that holds the
  /// debug information.
  std::uint64_t open_symbols();

  /// Calls `found` with the number of each address that a function has. Addresses are the file's, and rise. A function
  /// without a symbol has a name by nameless_function().
  void look_up(std::span<const std::uint64_t> addresses, const DebugInfo::Found& found);

 private:
  struct Handle;

  std::string path_;
  std::unique_ptr<Handle> handle_;
  std::optional<SymbolTable> symbols_;
};

/// What stands for the name of a function that has no symbol: its file and where it begins there, "cc1plus+0x84e3f0".
std::string nameless_function(std::string_view path, std::uint64_t begin);
bool is_nameless_function(std::string_view path, std::string_view name);

/// The bytes of a build id as tools write them: "68b310b9".
std::string build_id_text(std::string_view build_id);

}  // namespace cmt::symbols
