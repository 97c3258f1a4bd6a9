/// The blocks of CPython's own allocator, pymalloc, which cuts blocks of up to 512 bytes from arenas of its own. Calls
/// of malloc show none of them.
///
/// The interpreter calls its allocators by tables of functions (PyMem_SetAllocator). Ours take the place of those of
/// the domains "mem" and "obj", record, and call the ones before. This is done before the interpreter begins, or later
/// by a thread that holds its lock. Tables of the arenas' allocator are changed in the same way.
///
/// A call for more than 512 bytes reaches malloc inside, which records it: pool_malloc and pool_free are only for
/// blocks of the pool itself. Blocks from before the recording are not known.
#pragma once

/// From here on, an interpreter that is found is hooked. Only where call stacks are recorded.
void python_pool_begin(void);
/// The interpreter's tables get their functions back, at the next call by the interpreter.
void python_pool_end(void);
