/// The code that the tracer needs for each processor: system calls, and functions that pass on a call without a frame
/// of their own. It also knows what the loader and the kernel leave in memory. The clock is in preload/processor.h.
///
///     sys6()                        A system call.
///
///     machine_add()                 Adds to a word that only this thread and its signal handlers change, which cannot
///                                   come between. Returns what it was, and `seen`, another word, which is read one
///                                   instruction before.
///
///     machine_thread_word()         a word at a distance from the thread pointer; arm64 needs none
///
///     machine_interrupted_stack()   the stack pointer of the code that a signal has interrupted, if the signal's frame
///                                   contains `word`, or 0
///     relocation_...                of words that lead to functions
///
///     MACHINE_SYSCALL               defines syscall(3), which watched_syscall() gets where it may enter a sandbox
///
///     MACHINE_NOTED_EXPORT(), ..._HIDDEN()
///                                   define a function that calls note_NAME() with its three arguments and the place
///                                   of its return address, or 0, and jumps to the real one
#pragma once

#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#if defined __x86_64__
#include "preload/program/machine/x86_64.h"
#else
#include "preload/program/machine/arm64.h"
#endif
