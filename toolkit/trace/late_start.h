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

/// Before the first event was read: moves to the last keyframe with origins that is not behind the slice's begin.
/// Nothing where there is none, or where it is damaged: then the reader, which `reopen` may have replaced, is at its
/// begin, and tells of the damage where it gets there. Nor for a slice between marks, which may stand anywhere.
std::optional<LateStart> start_late(Reader& reader, const SliceRange& range, const std::function<Reader()>& reopen);

}  // namespace cmt::trace
