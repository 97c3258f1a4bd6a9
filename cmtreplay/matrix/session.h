/// Runs the cells of one trace in one process of cmtreplay.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/matrix/matrix.h"

namespace cmt::replay {

/// The warning of a trace without times, where MatrixSettings::needs_times is not set.
inline constexpr std::string_view no_times_warning = "has no recorded times";

/// Runs cells of one trace in one session, and fills in `results`, one for each cell. Calls `show` with each step and
/// the share that is done. Returns false on Ctrl-C. Throws what reading and planning the trace throws, and
/// std::runtime_error if memory is too short for it.
bool run_session(const MatrixPlan& plan, const TraceFile& file, std::span<const std::size_t> cells,
                 const MatrixSettings& settings, const std::function<void(const std::string&, double)>& show,
                 std::vector<Cell>& results);

}  // namespace cmt::replay
