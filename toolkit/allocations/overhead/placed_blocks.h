#pragma once

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/command/complaints.h"

namespace cmt::overhead {

/// Throws FormatError for an event with a block whose address is not known.
void require_addresses(const Event& event, const command::Complaints& complaints);

/// Adds a block to the live ones. A live block at the same address is removed and passed to `on_replaced` before.
template <class OnReplaced>
heap::Neighbourhood insert_block(heap::AddressIndex& live, const heap::PlacedBlock& block, OnReplaced on_replaced) {
  if (const auto found = live.insert(block)) return *found;
  on_replaced(*live.erase(block.address));
  return *live.insert(block);
}

}  // namespace cmt::overhead
