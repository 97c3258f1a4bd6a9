/// The live blocks of a trace with the calls that made them. The walk over a heap looks its blocks up here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "cmtwatch/explain/heap/glibc.h"
#include "libcmt/block_table.h"

namespace cmt::watch::explain {

/// The number of a call site in BlockSites::names.
using SiteId = std::uint32_t;

struct TracedBlock {
  std::uint64_t address = 0, size = 0;
  StackId stack = 0;
  std::uint32_t alignment = 0;  ///< that was asked for
};

/// A free of a block that had a mapping of its own.
struct FreedMapping {
  std::uint64_t size = 0, event = 0, time_ns = unknown;  ///< bytes asked for; the free: counted from 1, its time
  StackId stack = 0;                                     ///< of the allocation
};

struct BlockSites {
  static constexpr SiteId not_in_trace = 0, not_known = 1;

  std::string path{};  ///< of the trace
  std::string pid{};   ///< the process's number, as the trace has it; empty: it has none
  ScatteredBlocks<TracedBlock, &TracedBlock::address> blocks{};  ///< live at the trace's end
  std::map<std::uint64_t, FreedMapping> freed{};                 ///< the first of each size of mapping, in bytes
  std::vector<std::string> names{"not in the trace", "call stack not known"};  ///< of sites: "load (app.c:41)"
  std::vector<SiteId> by_stack{not_known};

  /// The site of a live chunk. A block of another size has taken an older one's place after the trace's end.
  SiteId site_of(Range chunk) {
    constexpr std::uint64_t own_bytes = 8, padding_max = 64;
    const TracedBlock* const block = blocks.find(chunk.begin + chunk_head_bytes);
    if (block == nullptr) return not_in_trace;
    const std::uint64_t usable = chunk.bytes() - own_bytes;
    return block->size <= usable && usable - block->size <= padding_max ? by_stack[block->stack] : not_in_trace;
  }
};

}  // namespace cmt::watch::explain
