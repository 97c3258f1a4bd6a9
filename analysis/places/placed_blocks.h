/// Checks and inserts blocks by address, for the annotation and the summary of overhead.
#pragma once

#include "cmt/event.h"
#include "libcmt/heap/address_index.h"
#include "toolkit/command/complaints.h"

namespace cmt::analysis {

/// Throws the FormatError of require_addresses().
[[noreturn]] void fail_without_address(const command::Complaints& complaints);

/// Throws FormatError if the event has a block without an address.
inline void require_addresses(const Event& event, const command::Complaints& complaints) {
  const bool lacks_old = event.old_address == 0 && event.ends_block(),
             lacks_new = event.address == 0 && event.makes_block();
  if (lacks_old || lacks_new) fail_without_address(complaints);
}

/// Adds `place.block` to the live blocks and sets its neighbours. If a live block has the same address, it is removed
/// and passed to `on_replaced` first.
template <class OnReplaced>
void insert_block(heap::AddressIndex& live, heap::Neighbourhood& place, OnReplaced on_replaced) {
  if (live.insert(place)) return;
  heap::Neighbourhood old;
  live.erase(place.block.address, old);
  on_replaced(old);
  live.insert(place);
}

}  // namespace cmt::analysis
