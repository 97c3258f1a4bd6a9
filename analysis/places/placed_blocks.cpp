// Reports a block without an address.
#include "analysis/places/placed_blocks.h"

#include "cmt/error.h"

namespace cmt::analysis {

void fail_without_address(const command::Complaints& complaints) {
  throw FormatError(complaints.place(), "a block without an address: its neighbours cannot be known");
}

}  // namespace cmt::analysis
