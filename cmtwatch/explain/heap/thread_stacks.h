/// The control blocks and the stacks of threads that libc has made, found without stopping a thread.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// A thread that libc has made. A block is known by two words that point at itself (struct pthread: `tcb`, `self`).
struct LibcThread {
  std::uint64_t control_block = 0;
  Range stack{};           ///< without its guard; empty for the first thread
  bool has_ended = false;  ///< libc keeps its stack for a thread to come
};

/// The threads whose control blocks were found, by address. A thread whose place on its stack is not known, because it
/// runs, may be missing.
std::vector<LibcThread> find_libc_threads(AddressSpace& memory);

}  // namespace cmt::watch::explain
