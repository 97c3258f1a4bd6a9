// Replaces remote_calls.cpp on processors other than x86-64, on which cmt cannot call functions in another process.
#include <stdexcept>

#include "cmtwatch/explain/calls/remote_calls.h"

namespace cmt::watch::explain {

TrimResult call_malloc_trim(int) {
  throw std::runtime_error("malloc_trim is called in another process only on x86-64");
}

std::optional<AllocatorFigures> ask_allocator(int) {
  throw std::runtime_error("an allocator is asked for its figures only on x86-64");
}

}  // namespace cmt::watch::explain
