/// Gives freed memory back to the system between the phases of cmtreport.
#pragma once

#include <cstddef>
#include <cstdlib>  // __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cmt::report {

/// Gives the memory between live blocks back to the system, if the C library keeps much of it. To be called after a
/// part of the work that needed much memory. The next part gets memory back page by page, at more than a page's use
/// costs. Giving back all was a fifth of the processor time of a report of 4 million events.
inline void give_back_freed_memory() {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  constexpr std::size_t much = std::size_t{32} << 20;
  if (::mallinfo2().fordblks < much) return;
#endif
  ::malloc_trim(0);
#endif
}

}  // namespace cmt::report
