/// Where the axes of a picture begin and end, and their ticks.
///
/// Round numbers depend on the unit: bytes step by powers of two, all else by 1, 2 or 5 times a power of ten. A
/// logarithmic axis has powers of 10, or of 2 for bytes: every one or every n-th of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "toolkit/output/json.h"
#include "toolkit/picture/picture.h"

namespace cmt::picture {

/// Maps a number to its position on an axis: the number itself, or on a logarithmic axis 1 + log2 from 1 on. So 0 has a
/// position there too, one doubling below 1.
double to_scale(double number, bool log);

/// At most `most` (2 or more) round numbers from `low` to `high`, with labels that share one unit on a linear axis.
std::vector<Tick> choose_ticks(Unit unit, bool log, double low, double high, int most);

/// One number with its unit: "1.5 M", "12.3 MiB", "340 ms", "12 %".
std::string label_text(Unit unit, double number);

/// The next round number, to end a linear axis with.
double round_up(Unit unit, double high);

/// "count", "bytes", "ns" or "share", as numbers.js calls a unit.
std::string_view unit_name(Unit unit);

/// The rules of ticks as JSON, by unit: base, least_step, factors[], magnitudes[]: [size, name]. numbers.js makes ticks
/// by them while a page zooms.
std::string tick_rules_json();

/// From where to where an axis goes; never empty, always finite.
struct Range {
  double low = 0;
  double high = 1;
};

/// The x axis of a panel of this picture.
Range x_range(const Picture& picture, const Panel& panel);

/// The y axis: from 0 to a round number, or as far as the map goes.
Range y_range(const Panel& panel);

/// From the colour for the least to that for the most: from 1 where logarithmic, else from 0; shares go up to 1.
Range colour_range(const HeatMap& heat);

/// The rows of a map of an address space: one for each bin of addresses that was ever used. Short gaps between bins are
/// empty rows; long gaps are left out, and the axis has a break there.
struct AddressRows {
  std::vector<std::uint64_t> bins;  ///< rising
  std::vector<std::size_t> rows;    ///< each bin's, among the rows between `edges`
  std::vector<double> edges;        ///< HeatMap::y_edges
  Axis axis;                        ///< addresses label the first row, rows after a gap, and some between

  /// The row of a bin that was used (asserted).
  std::size_t row_of(std::uint64_t bin) const;
};

/// `bins` may be in any order and repeated; an address is its bin times `bin_bytes`.
AddressRows address_rows(std::vector<std::uint64_t> bins, std::uint64_t bin_bytes);

}  // namespace cmt::picture
