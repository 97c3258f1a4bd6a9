/// Reads the call sites of live blocks from a trace.
#pragma once

#include <string>

#include "cmtwatch/explain/heap/block_sites.h"

namespace cmt::watch::explain {

/// Reads a whole trace, or what is written of it so far. Throws FormatError for one without addresses or call stacks.
BlockSites read_block_sites(const std::string& path);

}  // namespace cmt::watch::explain
