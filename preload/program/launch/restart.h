/// Programs that cannot run with the tracer: executes them again without it.
///
/// A sanitizer's allocator has to come first in the search order. It looks functions up, and by that calls us, before
/// it can be called itself. The address sanitizer of gcc ends the program if another library comes before its own.
/// Example: `make check` of a project that is built with -fsanitize=address, under cmttrace. Each of its programs is
/// executed twice, and the second time it has no libcmttrace.so in LD_PRELOAD.
///
/// The moment is the hard part. A sanitizer starts by the program's .preinit_array, before the constructors of all
/// libraries. Only the resolvers of STT_GNU_IFUNC symbols run earlier, while the loader relocates us. So one of our
/// functions has such a resolver (interpose/process.c). The loader reaches it by our procedure linkage table, which it
/// relocates last. By then the weak symbols of the sanitizers have their addresses.
///
/// restart.c calls no other function, not even strlen: a sanitizer has one of its own, which does not work yet.
///
/// The second start has the same process, words, descriptors, and signals that are ignored or blocked. LD_PRELOAD lacks
/// our library, and the environment all variables CMTTRACE_...: programs that this program starts are not recorded.
#pragma once

#include <stdbool.h>

/// Whether a sanitizer with an allocator is in the program.
bool has_sanitizer(void);

/// Executes the program again, and reports that to the launcher, or on standard error where there is none. Returns if
/// LD_PRELOAD does not name us, or the kernel refuses.
void restart_without_us(void);

/// The file name in LD_PRELOAD that means us.
const char* own_file_name(void);
