/// Words of other modules that contain the address of a function, and get the address of one of ours: mostly words of
/// the global offset table. All are remembered, so that they can be put back.
///
/// A word is changed by one aligned store, while other threads jump by it: they get the one function or the other. The
/// loader makes most of these words read-only once they are bound ("RELRO"); their pages are made writable for the time
/// of the store. Callers take turns.
#pragma once

#include "preload/program/hooks/object.h"

typedef void AnyFunction(void);

/// The words of a module: a part of one table of all.
struct ModuleWords {
  uintptr_t begin, end;  ///< of the module
  uint32_t first, count;
  bool is_seen;  ///< words_forget_unseen() keeps it
};

/// A module as the dynamic loader describes it; NULL: nothing. It stays valid until another one is added or forgotten.
struct ModuleWords* words_of(const struct Object* object);
/// Adds a module without words. NULL: there is no memory.
struct ModuleWords* words_add_module(const struct Object* object);
/// Forgets the modules that were not seen since the last call.
void words_forget_unseen(void);

/// Whether the loader still binds the words of a module.
bool words_are_being_bound(const struct Object* object);

/// Stores `ours` in a word of the module that was added last. `before` is what restoring puts back. False: the word
/// cannot be written to, or there is no memory.
bool words_change(const struct Object* object, AnyFunction** word, AnyFunction* before, AnyFunction* ours);
/// Remembers a word of that module that has ours already, if it is one of a former list of the same module.
void words_keep(const struct ModuleWords* former, AnyFunction** word);
/// Closes the module's pages again.
void words_close(const struct Object* object);

/// Restores the former addresses in the words of a module, where ours are still in them.
void words_restore(const struct Object* object);
/// Whether a module that has words has lost one of them: it is another one, loaded to the same addresses.
bool words_are_lost(const struct ModuleWords* module);
/// When all modules are restored.
void words_forget_all(void);
