/// The tracer's entries when it is brought into a program that runs (preload/attach.h): cmttrace_attach,
/// cmttrace_detach, cmttrace_release. They are called by cmttrace, on a thread of the program that has been interrupted
/// anywhere outside of the loader and the allocator.
///
/// After cmttrace_release the library stays loaded: a program may have copied the address of one of its functions, from
/// a word, into memory of its own. Such a call goes on to the real function. Three things remain in memory: its own
/// segments, the addresses of the rings (some 100 KiB of private memory), and the emptied tables of owners.h and
/// pages/large_blocks.h.
#pragma once

#include <stdbool.h>

/// For the constructor: whether the library was loaded to attach it. Then that is done, or has failed.
bool attach_has_begun(void);
