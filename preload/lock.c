#include "preload/lock.h"

#include "preload/sys.h"

static const uint32_t sleepers = 0x80000000u;
enum { spins = 100, futex_wait = 128, futex_wake = 129 };  // both FUTEX_PRIVATE_FLAG

static bool swap_from(struct Lock* lock, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&lock->word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool lock_is_mine(const struct Lock* lock, uint32_t self) {
  return (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) & ~sleepers) == self;
}

// Whoever slept takes the lock with the sleepers' bit set: others may be asleep still, and a wake too many is cheap.
static void sleep_and_take(struct Lock* lock, uint32_t self) {
  for (;;) {
    uint32_t seen = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
    if (seen == 0) {
      if (swap_from(lock, 0, self | sleepers)) return;
    } else if ((seen & sleepers) || swap_from(lock, seen, seen | sleepers)) {
      sys(SYS_futex, &lock->word, futex_wait, seen | sleepers, 0);
    }
  }
}

void lock_take(struct Lock* lock, uint32_t self) {
  for (int i = 0; i < spins; i++) {
    if (swap_from(lock, 0, self)) return;
    __builtin_ia32_pause();
  }
  sleep_and_take(lock, self);
}

void lock_give(struct Lock* lock) {
  if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & sleepers) sys(SYS_futex, &lock->word, futex_wake, 1);
}
