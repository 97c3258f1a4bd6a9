/// Checks of the first Python stacks, before their memory is trusted: a wrong offset ends in one line, and not in a
/// fault.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// Checks the chain of a state that is said to be the calling thread's. Returns NULL, or what is wrong.
const char* check_chain(uintptr_t state, uintptr_t thread);
/// Checks the state itself, which is read before it is known to be one.
const char* check_state(uintptr_t* state);
