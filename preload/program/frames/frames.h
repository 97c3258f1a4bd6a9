/// Frames of interpreters in call stacks: each evaluation loop among the native frames is replaced by the run of Python
/// frames that it executes (python.h).
///
///     native   _start  main  run_main  loop  call_slot  loop  list_resize          outermost first
///     Python                           '- main:10 run:7 '- load:41
///
///     mixed    _start  main  run_main  main:10  run:7  call_slot  load:41  list_resize
///
/// A run is placed by its anchor, an address in the loop's own frame. If a stack's runs cannot all be placed, the stack
/// is native, and InterpreterFrames::unplaced counts it. Also native, and not counted, are stacks of signal handlers
/// that interrupt a capture, and stacks that libc has not made.
///
/// The first stacks are checked: nothing is read but memory that the kernel says can be read, and each value has to be
/// what it should be. If one is not, one line on standard error says so, and all stacks are native from there on.
///
/// Calls go one way: mix.c -> chain.c, check.c -> names.c -> python.c.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/program/unwind/unwind.h"

struct MixedThread;

/// In a process that begins. `share`: of its StackShare; stays while the process runs. `wanted`: false: all stacks are
/// native.
void frames_begin_process(struct InterpreterFrames* share, bool wanted);
/// Puts the interpreter's functions back.
void frames_end(void);

/// Not NULL: called when an interpreter is found, and with each stack that has its frames. `is_locked`: whether the
/// thread holds the interpreter's lock. Returns whether the pool of the interpreter is recorded from now on.
extern bool (*frames_found)(bool is_locked) HIDDEN;

/// Looks for an interpreter among the modules that were met, and whether it is still there.
void frames_look(void);

/// Bytes of a MixedThread, zeroed memory of a thread. Little of it is touched.
extern const size_t frames_thread_bytes;

/// A mixed stack. Its frames are those of frames_of() until the next frames_mix() of the thread.
struct MixedStack {
  uint32_t kept;  ///< outer frames that are those of the mixed stack before
  uint32_t frames;
};

/// Mixes the stack that the thread has captured last and not released. `frame`: as for unwind_capture(). All captures
/// of the thread that are not apart must be mixed, in order.
struct MixedStack frames_mix(struct MixedThread* mixed, const struct UnwindThread* native,
                             const struct UnwindStack* stack, const void* frame);
/// The frames, as records have them, the outermost first.
const uint32_t* frames_of(const struct MixedThread* mixed);
