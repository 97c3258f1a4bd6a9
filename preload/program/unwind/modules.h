/// The modules of the process, as the loader knows them, and the table of those that are on stacks (StackModule).
///
/// A module is entered when the first rule for its code is made. When the loader frees its link_map it is marked as
/// gone, and its rules die. If the same file then comes back to the same addresses, which its build id tells, it gets
/// its old number again: so a program that loads and unloads one plugin for ever does not fill the table.
///
/// Threads and signal handlers enter modules at the same time, without a lock. Where two enter the same one, it has two
/// numbers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/unwind/cfi.h"
#include "preload/program/unwind/unwind.h"

/// Finds the loader's functions. False: this libc does not have them.
bool modules_find_loader(void) UNWIND_HIDDEN;

/// In a process that begins.
void modules_begin(struct StackShare* share) UNWIND_HIDDEN;

/// The module that has code at an address.
bool module_find(uintptr_t address, struct CfiModule* module) UNWIND_HIDDEN;

/// Its number in the table, or 0: the table is full.
uint32_t module_number(const struct CfiModule* module) UNWIND_HIDDEN;

/// Marks the modules of a link_map as gone. Calls `forget` for the number of each.
void modules_remove(const void* link_map, void (*forget)(uint32_t number)) UNWIND_HIDDEN;
