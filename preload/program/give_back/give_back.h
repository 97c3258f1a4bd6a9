/// Calls that give memory back to the kernel, or say when an allocator does: malloc_trim, mallopt, and jemalloc's
/// mallctl. The functions are called as without the tracer; those that succeed are events with what was asked for.
#pragma once

/// At the tracer's constructor: where jemalloc is loaded, watches the calls of mallctl, mallctlbymib and
/// mallctlnametomib by the modules that are loaded (got.h).
void give_back_watch_mallctl(void);
