// Looks for the last keyframe with origins before a slice.

#include "toolkit/trace/late_start.h"

#include <cassert>
#include <utility>

#include "cmt/error.h"
#include "libcmt/trace/source.h"

namespace cmt::trace {
namespace {

bool is_before(const BlockStart& block, const SliceBound& from) {
  assert(from.unit != SliceBound::Unit::mark);
  return from.unit == SliceBound::Unit::events ? block.first_event <= from.value : block.time_ns < from.value;
}

std::optional<LateStart> start_at_origins(Reader& reader, const SliceBound& from) {
  const std::vector<BlockStart>& blocks = reader.blocks();
  for (auto block = blocks.rbegin(); block != blocks.rend() && block->first_event != 0; ++block) {
    if (!block->keyframe || !is_before(*block, from)) continue;
    auto origins = reader.impl().source_->list_origins_before(*block);
    if (!origins) continue;
    reader.seek(block->first_event);
    return LateStart{block->first_event, std::move(*origins)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<LateStart> start_late(Reader& reader, const SliceRange& range, const std::function<Reader()>& reopen) {
  if (!range.from || range.unit == SliceBound::Unit::mark) return std::nullopt;
  try {
    return start_at_origins(reader, *range.from);
  } catch (const FormatError&) {
    reader = reopen();
    return std::nullopt;
  }
}

}  // namespace cmt::trace
