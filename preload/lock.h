/// The one lock of the recorder: a futex that knows its owner, so that a signal handler can tell that it interrupted
/// the owner. It allocates nothing, and a forked child may simply open it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct Lock {
  uint32_t word;  ///< 0, or the owner's thread id, with the top bit where somebody sleeps
};

void lock_take(struct Lock* lock, uint32_t self);
void lock_give(struct Lock* lock);
bool lock_is_mine(const struct Lock* lock, uint32_t self);
