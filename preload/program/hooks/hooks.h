/// Leads calls of other modules to the tracer's functions, where the loader does not:
///
/// - calls of all functions that the tracer interposes, when it was attached,
///
/// - calls of jemalloc's mallctl, which the tracer does not export,
///
/// - and calls of modules that the loader has bound past it (RTLD_DEEPBIND, as PHP's).
///
/// A module calls a function of another one by a word that the loader has bound to it. These relocations have such
/// words:
///
///     R_X86_64_JUMP_SLOT    A word of the procedure linkage table, perhaps not bound yet.
///     R_X86_64_GLOB_DAT     A word by which code calls, or takes the address.
///     R_X86_64_64           A word of data: a table of functions.
///
/// If the symbol has the function's name, and the word has the real function's address, the word gets the address of
/// ours. A word with another address, of an allocator that is the module's own, stays as it is: blocks of that one must
/// not come to the real free. A word of data may also have an address that the program has stored there since. It shows
/// another allocator only where a module defines a function of that name at this address. A word that is not bound yet
/// would be bound to the real function.
///
/// The loader's own words, by which it allocates what it knows of a module, have no relocations. They are the
/// words of its read-only data that have the address of the real malloc, calloc, realloc or free. They are changed when
/// the tracer is attached. So all is recorded that a preloaded one would record, and the unwinder forgets the rules of
/// modules that are gone.
///
/// Calls are not reached if a module has a function's address otherwise, by dlsym(3) or in memory of its own. Another
/// copy of libc in a namespace of dlmopen(3) is not reached either.
///
/// Cost: some 20 ns for each relocation with a name, 1 ms for a program of 100 modules.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum HookSet {
  hooks_of_mallctl = 1,
  hooks_of_recording = 2,
  hooks_of_symbols = 4,  ///< dlsym, whose call shows that a module has been loaded (hooks/loads.h)
  hooks_of_all = 7,
};

/// The outcome.
struct HookReport {
  uint32_t words;      ///< that lead to us now
  uint32_t bypasses;   ///< modules that call another allocator
  char bypass[256];    ///< the first of them
  uint32_t refused;    ///< words that could not be written to
  bool is_unfinished;  ///< the loader is at a module, or another thread was at work: to be called again
};

/// Changes the words of all modules, and from here on of those that are loaded (hooks/loads.h). Sets add up.
struct HookReport hooks_replace(uint32_t sets);
/// Changes those of modules that have come since. `is_deep`: they were loaded with RTLD_DEEPBIND.
struct HookReport hooks_replace_new(bool is_deep);
/// Puts all words back. False: another thread is at work.
bool hooks_restore(void);

/// Before a module is loaded: whether it has to be looked at. `is_deep`: as above.
bool hooks_follow_load(bool is_deep);
