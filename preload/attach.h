/// The memory that cmttrace and libcmttrace.so share while cmttrace brings the library into a running program. C and
/// C++.
///
/// The program gets a file without a name (memfd), which contains the library, zeros up to a whole page, and a struct
/// Attach in whole pages. Both sides map the struct. Then, on a thread of the program:
///
///     cmttrace                                   the library
///
///     dlopen("/proc/self/fd/N")            ->    Its constructor calls cmttrace_attach(N).
///                                                Maps the struct, closes N, makes the rings: attach_has_rings.
///
///     takes them (pidfd_getfd),
///     rings_taken = 1                      ->    Closes its own descriptor, changes the words that lead to the
///                                                allocator, records: attach_recording.
///
///     starts the collector
///     cmttrace_detach()                    ->    Puts the words back, asks the collector to finish: attach_detached.
///
///     waits until no thread is in the library
///     cmttrace_release()                   ->    Gives the memory back: attach_released.
///     cmttrace_attach(M)                   ->    once more, with another file. The library stays loaded
///
/// `state` and `rings_taken` are futexes. Nothing is written to the program's standard error.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum AttachState {
  attach_begins,
  attach_has_rings,  ///< `rings_fd` is open, until `rings_taken`, or for attach_wait_ms
  attach_recording,
  attach_failed,  ///< all is as before; `message` says why
  attach_detached,
  attach_released,
};

enum { attach_settings_bytes = 16384, attach_message_bytes = 256, attach_program_bytes = 256, attach_wait_ms = 1000 };

#define attach_magic "cmtatt01"

struct Attach {
  char magic[8];                         ///< attach_magic, without its end
  char build_id[40];                     ///< the library's, in hexadecimal digits
  uint32_t rings_taken;                  ///< by cmttrace
  uint32_t state;                        ///< enum AttachState, by the library
  int32_t rings_fd;                      ///< in the program
  uint32_t words;                        ///< that were changed
  uint64_t process;                      ///< in its own namespace; forked children have the struct mapped too
  char message[attach_message_bytes];    ///< why it failed; while it records, what could not be reached
  char settings[attach_settings_bytes];  ///< variables of libcmttrace(1): "CMTTRACE_TIME=1\0CMTTRACE_STACKS=1\0\0"
  uint64_t thread_word_at;               ///< of the library (preload/program/thread.h); 0: as it was
  char program[attach_program_bytes];    ///< its name, for children; empty: as the library knows it
};

/// The bytes at the file's end that are mapped. The struct is at their begin.
enum { attach_bytes = (sizeof(struct Attach) + 4095) / 4096 * 4096 };

static_assert(offsetof(struct Attach, rings_taken) == 48 && offsetof(struct Attach, message) == 72, "one layout");
