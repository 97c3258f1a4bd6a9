/// A program that takes system calls away from itself (seccomp(2)) may pay for the next one with its life. So from then
/// on the tracer makes none on its behalf: nobody is woken or waited for by futex, the collector looks at the rings by
/// itself a thousand times a second, threads are not told from each other by the kernel's numbers, and what a forked
/// child does is not recorded but counted.
///
/// It is noticed by name: prctl and syscall, which is what libseccomp calls too. A program that enters with an
/// instruction of its own, or finds itself inside after an exec, is not; there an errno does no harm (a full ring is
/// seen to a tenth of a second later), but a signal would end it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"

extern bool sandbox_entered;

/// Before it is entered: what the collector says is the time from here on, and it is `now`.
void sandbox_begin(struct Control* control, uint64_t now);
/// For who may not read the clock (seccomp's strict mode, PR_SET_TSC): the stamp that the collector last told.
uint64_t sandbox_clock(void);

/// In place of FUTEX_WAIT: whether the word was still `seen` after about a tenth of a second.
bool sandbox_wait(const uint32_t* word, uint32_t seen);
