/// The forms of overhead's summary: text, CSV and pictures.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/places/summary.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/picture/picture.h"

namespace cmt::overhead {

/// Returns a block as traces name it: "7ffd30a51000<12>".
std::string block_text(std::uint64_t address, Tag tag);
template <class Block>
std::string block_text(const Block& block) {
  return block_text(block.address, block.tag);
}

/// For people: the samples, the gaps at the peak, the blocks that pin pages, and those that hold them.
std::string to_text(const analysis::Summary& summary);

/// For spreadsheets: the samples under a line of titles.
std::string to_csv(const analysis::Summary& summary);

/// Memory over time, and a map of the addresses that were live. The summary must have its curve and its address map.
picture::Picture to_picture(const analysis::Summary& summary);

}  // namespace cmt::overhead
