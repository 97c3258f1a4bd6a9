#pragma once

#include <string>

#include "libcmt/heap/placed_block.h"
#include "toolkit/output/numbers.h"

namespace cmt::overhead {

/// A block as traces name it: "7ffd30a51000<12>".
inline std::string block_text(const heap::PlacedBlock& block) {
  return output::hex(block.address) + "<" + std::to_string(block.tag) + ">";
}

}  // namespace cmt::overhead
