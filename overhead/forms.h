#pragma once

#include <cstdint>
#include <string>

#include "libcmt/heap/address_index.h"
#include "toolkit/allocations/overhead/summary.h"
#include "toolkit/picture/picture.h"

namespace cmt::overhead {

/// A block as traces name it: "7ffd30a51000<12>".
std::string block_text(std::uint64_t address, Tag tag);
template <class Block>
std::string block_text(const Block& block) {
  return block_text(block.address, block.tag);
}

/// For people: the samples, the gaps at the peak, the blocks that pin pages, and those that hold them.
std::string to_text(const Summary& summary);

/// For spreadsheets: the samples under a line of titles.
std::string to_csv(const Summary& summary);

/// Memory over time, and a map of the addresses that were live. The summary must have its curve and its address map.
output::Picture to_picture(const Summary& summary);

}  // namespace cmt::overhead
