/// The numbers and names of Python lines (InterpreterFrames). A line gets its number at its first sight, and its names
/// then: the frame holds the code object, so that its strings live.
///
/// Code objects die, and their addresses return with other code. So the interpreter's function that destroys code
/// objects is replaced by one that forgets what is known of the address.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/stack_share.h"

/// Rises when a code object dies, and in a new process: each number that a thread remembers may mean another line now.
extern uint32_t names_epoch __attribute__((visibility("hidden")));

/// In a process that begins. Returns false if there is no memory. `share` stays while the process runs.
bool names_begin(struct InterpreterFrames* share);
/// Learns of code objects that die from here on.
void names_watch_code(void);
/// Puts the interpreter's function back, if ours is still in its place.
void names_end(void);

/// The index, as records have it, of the line at `instruction` of `code`. Makes a new one if there is none.
uint32_t names_find(uintptr_t code, uintptr_t instruction);

/// Whether a frame has the names that the interpreter gives now. Only in a library that checks itself.
bool names_are_right(uintptr_t code, uintptr_t instruction, uint32_t index);
