#pragma once

#include <string>
#include <vector>

#include "toolkit/picture/picture.h"

namespace cmt::output {

/// Maps an axis to where its numbers are drawn: themselves, or 1 + log2 from 1 on. So 0 has its place on a logarithmic
/// axis, one doubling's width below 1.
double to_scale(double number, bool log);

/// The inverse.
double from_scale(double place, bool log);

/// At most `most` (2 or more) round numbers from `low` to `high`, with labels that share one unit on a linear axis.
std::vector<Tick> choose_ticks(Unit unit, bool log, double low, double high, int most);

/// One number with its unit: "1.5 M", "12.3 MiB", "340 ms", "12 %".
std::string label_text(Unit unit, double number);

/// The next round number, to end a linear axis with.
double round_up(Unit unit, double high);

}  // namespace cmt::output
