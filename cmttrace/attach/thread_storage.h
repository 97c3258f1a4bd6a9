/// Gives the attached library's thread variables a place that no later library lacks.
///
/// The library's variables of each thread are initial-exec, since code in malloc must not allocate. The loader would
/// take their 200 bytes from the 1,664 that glibc keeps for libraries that are loaded later. Then the program's own
/// dlopen of a library that needs all of these would fail.
///
/// On x86-64, 512 bytes after each thread's pointer have had no use since glibc 2.23. They are kept because programs
/// depend on the size of the header they are in:
///
///     fs:0x000  the thread's own address
///     fs:0x010  the same
///     fs:0x080  __glibc_unused2, 512 bytes of zeros
///     fs:0x2d0  the kernel's id of the thread
///
/// So cmttrace changes the copy of the library that it gives to the process. The segment of thread variables becomes no
/// segment, and words with offsets of variables get the final values. The code is the same, and costs the same.
///
/// glibc does not clear these bytes when it gives the stack of an ended thread to a new one. Therefore the library
/// compares the kernel's id (preload/program/thread.h). A process whose layout is another one keeps the old way.
#pragma once

#include <cstdint>
#include <string>

#include "toolkit/remote_call/remote_caller.h"
#include "toolkit/remote_call/target.h"

namespace cmt::attach {

/// In bytes from the thread pointer.
constexpr std::uint64_t thread_storage_at = 0x80, thread_storage_bytes = 512, thread_id_at = 0x2d0;

/// Whether a thread of the process has this layout, and its bytes are zero. False if the thread has ended.
bool has_thread_storage(const remote_call::Target& target, const remote_call::CallingThread& thread);

/// Changes a library that has been read. Returns false, and changes nothing, if its variables do not fit.
bool move_thread_variables(std::string& library);

}  // namespace cmt::attach
