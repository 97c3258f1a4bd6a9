/// Finds the separate debug file of a module, and opens only regular files for that.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::symbols {

/// The build id of an open ELF file; empty: it has none. Throws FormatError.
std::string build_id_of(int fd, const std::string& path);

/// The section of a file with a name; null: none.
Elf_Scn* find_section(Elf* elf, std::string_view name);

/// Whether debug information is compressed with zstd. After libdw has read it, it is not, unless libelf knows no zstd.
bool has_zstd(Elf* elf);

/// The separate debug file of a module by its build id, in the directories. None: -1.
process::Fd open_by_build_id(std::string_view build_id, std::span<const std::string> directories);

/// Implements libdwfl's callback for debug files. libdwfl's own answer opens what the module's debug link names, be it
/// a FIFO. A file serves if its build id is the module's or, for a module without one, if its checksum is the link's.
///
///     /usr/bin/app, debug link app.debug    DIR/.build-id/68/b310b9.debug
///                                           /usr/bin/app.debug, /usr/bin/.debug/app.debug
///                                           DIR/usr/bin/app.debug, DIR/bin/app.debug, DIR/app.debug
class DebugFiles {
 public:
  /// `root`: a folder that is "/" for the module's path; empty: ours. `module`: the status of the module's own file.
  DebugFiles(std::span<const std::string> directories, std::string root, const struct stat& module)
      : directories_(directories.begin(), directories.end()), root_(std::move(root)), module_(module) {}

  /// Dwfl_Callbacks::find_debuginfo. The module's user data is a DebugFiles.
  static int find(Dwfl_Module* module, void** user_data, const char* name, Dwarf_Addr base, const char* file_name,
                  const char* link, GElf_Word link_checksum, char** found_name);

  /// Whether the debug information may be used. If it refers to an alternate file (of dwz), find() must have found that
  /// file: libdw itself would open any file of that name.
  bool may_use(Dwarf* dwarf) const;

  /// The folders in which libdw looks for the files of split units, besides those that the units name.
  const std::vector<std::string>& folders() const { return folders_; }
  void add_folder_of(int fd);

  /// The path of the debug file that find() has found, if it has_zstd(); empty: it has not.
  const std::string& with_zstd() const { return with_zstd_; }

 private:
  struct Wanted {
    std::string build_id;
    std::optional<std::uint32_t> checksum;
    bool is_alternate = false;  ///< may_use() compares its build id
  };

  process::Fd find_file(const Wanted& wanted, std::string_view file_name, const char* link) const;
  process::Fd open_if(const Wanted& wanted, const std::string& path, const std::string& root) const;

  std::vector<std::string> directories_;
  std::string root_;
  struct stat module_;
  std::string alternate_id_;
  std::string with_zstd_;
  std::vector<std::string> folders_;
};

}  // namespace cmt::symbols
