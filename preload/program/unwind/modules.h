/// The modules of the process, as the loader knows them, and the table of those that are on stacks (StackModule).
///
/// A module is entered when the first rule for its code is made. When the loader frees its link_map it is marked as
/// gone, and its rules die. If the file with the same build id is loaded to the same addresses again, it gets its old
/// number. So a program that loads and unloads one plugin for ever does not fill the table.
///
/// Threads and signal handlers enter modules at the same time, without a lock. If two enter the same module, it has two
/// numbers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/cfi/cfi.h"
#include "preload/program/unwind/unwind.h"

/// A module of the process. If a program is not mapped in one piece, the part with the code.
struct LoadedModule {
  const void* link_map;
  uintptr_t begin, end;
  uintptr_t header;                ///< .eh_frame_hdr; 0: none
  uintptr_t info_begin, info_end;  ///< the range that contains .eh_frame_hdr and .eh_frame
};

/// Finds the loader's functions. Returns false if this libc does not have them.
bool modules_find_loader(void) UNWIND_HIDDEN;

/// Prepares a process that begins.
void modules_begin(struct StackShare* share) UNWIND_HIDDEN;

/// A symbol to look for. `found` stays as it is where there is none. `bytes`: NULL, or set to its size.
struct WantedSymbol {
  const char* name;
  void** found;
  uintptr_t* bytes;
};
/// Looks for a symbol in the module that has an address. Takes no lock of the loader.
void module_symbol(uintptr_t address, const struct WantedSymbol* wanted) UNWIND_HIDDEN;

/// The module that has code at an address.
bool module_find(uintptr_t address, struct LoadedModule* module) UNWIND_HIDDEN;

/// Its call frame information, read in place.
struct CfiTables module_tables(const struct LoadedModule* module) UNWIND_HIDDEN;

/// Its number in the table, or 0: the table is full.
uint32_t module_number(const struct LoadedModule* module) UNWIND_HIDDEN;

/// Marks the modules of a link_map as gone. Calls `forget` for the number of each.
void modules_remove(const void* link_map, void (*forget)(uint32_t number)) UNWIND_HIDDEN;
