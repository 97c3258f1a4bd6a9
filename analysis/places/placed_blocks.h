#pragma once

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/command/complaints.h"

namespace cmt::analysis {

/// Throws FormatError: the event has a block whose address is not known.
[[noreturn]] void fail_without_address(const command::Complaints& complaints);

/// Throws FormatError for an event with a block whose address is not known.
inline void require_addresses(const Event& event, const command::Complaints& complaints) {
  const bool lacks_old = event.old_address == 0 && event.ends_block(),
             lacks_new = event.address == 0 && event.makes_block();
  if (lacks_old || lacks_new) fail_without_address(complaints);
}

/// Adds `place.block` to the live ones and tells its neighbours. A live block at the same address is removed and passed
/// to `on_replaced` before.
template <class OnReplaced>
void insert_block(heap::AddressIndex& live, heap::Neighbourhood& place, OnReplaced on_replaced) {
  if (live.insert(place)) return;
  heap::Neighbourhood old;
  live.erase(place.block.address, old);
  on_replaced(old);
  live.insert(place);
}

}  // namespace cmt::analysis
