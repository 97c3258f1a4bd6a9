/// The kernel's clocks, and whether the processor's own can be used.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t clock);
/// Whether stamps of different processors can be compared.
bool clock_has_steady_tsc(void);
