/// Gives freed memory back to the system between the phases of cmtreport.
#pragma once

#include <cstdlib>  // __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace cmt::report {

/// Gives the memory between live blocks back to the system, which the C library would keep. To be called after a part
/// of the work that needed much memory. Takes 3 ms for 30 MB.
inline void give_back_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace cmt::report
