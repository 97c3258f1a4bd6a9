#pragma once

#include <cstdint>
#include <vector>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// The rows of a map of an address space: one for each bin of addresses that was ever used. Short gaps between them are
/// rows too, that stay empty; long ones are left out, and the axis breaks there.
struct AddressRows {
  std::vector<std::uint64_t> bins;  ///< rising
  std::vector<std::size_t> rows;    ///< each bin's, among the rows between `edges`
  std::vector<double> edges;        ///< HeatMap::y_edges
  Axis axis;                        ///< with addresses where the map begins, behind gaps and here and there

  /// The row of a bin that was used (asserted).
  std::size_t row_of(std::uint64_t bin) const;
};

/// `bins` in any order, more than once too; an address is its bin times `bin_bytes`.
AddressRows address_rows(std::vector<std::uint64_t> bins, std::uint64_t bin_bytes);

}  // namespace cmt::output
