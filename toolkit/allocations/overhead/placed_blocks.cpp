#include "toolkit/allocations/overhead/placed_blocks.h"

#include "cmt/error.h"

namespace cmt::overhead {

void fail_without_address(const command::Complaints& complaints) {
  throw FormatError(complaints.place(), "a block without an address: its neighbours cannot be known");
}

}  // namespace cmt::overhead
