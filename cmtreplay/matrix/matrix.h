/// Plans and runs the matrix: every trace on every allocator.
///
/// All allocators of a trace, and the reference, are run in one session, in the same rounds (run/runs.h). So the runs
/// of a round can be compared in pairs. Each allocator's part of a session is a cell. A cell that is run alone, as a
/// task of a cluster, has the reference in its session too.
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"
#include "cmtreplay/matrix/trace_files.h"
#include "toolkit/command/interrupts.h"

namespace cmt::replay {

/// The traces, the allocators, and a cell for each pair of them.
struct MatrixPlan {
  std::vector<TraceFile> traces;
  std::vector<Allocator> allocators;
  Allocator reference;
  Allocator null;
  std::vector<Cell> cells{};  ///< trace by trace; each has what is known before it is run

  std::size_t trace_of(std::size_t cell) const {
    assert(cell < cells.size());
    return cell / allocators.size();
  }
  std::size_t allocator_of(std::size_t cell) const { return cell % allocators.size(); }
};

/// How it is run.
struct MatrixSettings {
  std::string worker;
  const ReplayOptions& options;
  const TraceOptions& trace;
  const command::Interrupts& interrupts;
  bool verifies = false;       ///< instead of measuring
  bool is_gate = false;        ///< cells are never stored, and builds of one name are named by their paths
  bool force = false;          ///< replay even if memory is short
  bool needs_times = true;     ///< refuse a trace without times if the clock should be recorded; else a warning says so
  double confirm_memory = -1;  ///< peaks or fragmentation greater by this share are measured again; -1: none
  std::function<void(const std::string&)> show = [](const std::string&) {};    ///< the current step, for a terminal
  std::function<void(const std::string&)> remark = [](const std::string&) {};  ///< a message
  std::function<void(Cell)> keep = {};                                         ///< a cell that is done
};

/// Fills in `cells`. Drops allocators that are the same as an earlier one: a copy in another folder, of the same name,
/// build and settings. Throws std::system_error for a library that cannot be read.
void plan_cells(MatrixPlan& plan, const MatrixSettings& settings);

/// Runs the cells with these indexes, trace by trace. The indexes have to rise. If a trace cannot be replayed, its
/// cells are not_replayed, with the reason. Returns false on Ctrl-C, which loses the cells of the current trace.
bool run_cells(const MatrixPlan& plan, const std::vector<std::size_t>& wanted, const MatrixSettings& settings);

}  // namespace cmt::replay
