#include "toolkit/allocations/overhead/placed_blocks.h"

#include "cmt/error.h"

namespace cmt::overhead {

void require_addresses(const Event& event, const command::Complaints& complaints) {
  if ((event.ends_block() && event.old_address == 0) || (event.makes_block() && event.address == 0)) {
    throw FormatError(complaints.place(), "a block without an address: its neighbours cannot be known");
  }
}

}  // namespace cmt::overhead
