/// Finds the tear-down of a trace.
///
/// Many programs free nearly all of their blocks just before they exit. The memory at the end of such a trace is what
/// the allocator keeps of a program that is gone. The program's user had the memory of the moment before, x:
///
///     live    +--+
///     bytes  +   ++
///           +     +--------------x         rest: the program waits
///          +                      ++       tear-down
///         +                        +---    what remains
///         -----------------------------
///                                    end
///
/// The tear-down begins at x. It is the last fall of live bytes that meets these conditions:
///
/// 1. It is for good: live bytes never exceed those at x again.
/// 2. It is large: at least half of the bytes live at x are freed, and a fiftieth of the trace's peak.
/// 3. Live bytes rest before it, for a quarter of the time from x to the end. There they exceed those at x by at most
///    an eighth of the freed bytes. So a fall with a pause after it is not part of the tear-down, and a steady fall
///    without a rest before it is none.
/// 4. It is at the end. After seven eighths are freed, the trace lasts at most four times as long as that took, or at
///    most a hundredth of the whole trace. A program that idles after it has freed all is still in use.
///
/// Time is the recorded time. A trace without times is measured in events, where a pause without calls is not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cmt::replay {

/// The bytes live at a moment, which is a time or a number of events.
struct LiveMoment {
  std::uint64_t at = 0;
  std::uint64_t live_bytes = 0;
};

/// Returns the index of the highest moment in the rest before x, which includes x, the last one of equals. Returns
/// nullopt if there is no tear-down. Moments are in order, and the last one is the end of the trace.
std::optional<std::size_t> last_before_teardown(std::span<const LiveMoment> moments);

}  // namespace cmt::replay
