/// Memory that transparent huge pages make resident although the program never wrote to it.
#pragma once

#include <cstdint>
#include <optional>

#include "cmtwatch/explain/memory/address_space.h"

namespace cmt::watch::explain {

/// The bytes of pages of 4 KiB in transparent huge pages that hold only zeros. Reads all huge pages. Returns nullopt if
/// the kernel does not say which they are (Linux 6.7 does), or if they change meanwhile.
std::optional<std::uint64_t> zero_bytes_in_huge_pages(AddressSpace& memory);

}  // namespace cmt::watch::explain
