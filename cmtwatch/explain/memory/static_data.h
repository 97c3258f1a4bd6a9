/// Static data that is zero at first: the part of a module's data segment that its file does not have (.bss).
#pragma once

#include <vector>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// The anonymous memory after the data of each module, of whole pages. Modules whose first page is not resident, or
/// whose head is damaged, are left out.
std::vector<Range> find_static_data(AddressSpace& memory);

}  // namespace cmt::watch::explain
