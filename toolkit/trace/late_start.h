/// The begin of a slice of a long .cmt, without the events before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cmt/reader.h"
#include "libcmt/format/origins.h"
#include "toolkit/trace/slice.h"

namespace cmt::trace {

/// A keyframe from which a trace is read on.
struct LateStart {
  std::uint64_t event = 0;  ///< the number of the next event, from 0
  format::Origins origins;  ///< of the blocks that are live before it
};

/// To be called before the first event is read. Moves the reader to the last keyframe with origins before the slice.
/// Returns nothing, and leaves the reader at its begin, in three cases:
///
/// - There is no such keyframe.
/// - It is damaged. Then `reopen` has replaced the reader, which will report the damage when it gets there.
/// - The slice is between marks, which may be anywhere.
std::optional<LateStart> start_late(Reader& reader, const SliceRange& range, const std::function<Reader()>& reopen);

}  // namespace cmt::trace
