// Plans the cells of a matrix and runs them trace by trace, with the time that is left.
#include "cmtreplay/matrix/matrix.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "cmtreplay/matrix/session.h"
#include "toolkit/terminal/progress.h"

namespace cmt::replay {
namespace {

/// Estimates the time that is left of work whose parts have known weights.
class TimeLeft {
 public:
  void add_work(std::uint64_t weight) { total_ += static_cast<double>(weight); }
  void begin(std::uint64_t weight) { current_ = static_cast<double>(weight); }
  void end() {
    done_ += current_;
    current_ = 0;
  }

  /// "; 35 %, 2 min left", if `share` of the current part is done. Empty while too little is done.
  std::string text(double share) const {
    const double done = done_ + current_ * share;
    return total_ <= 0 || done < total_ / 100 ? "" : "; " + share_.text(done / total_);
  }

 private:
  terminal::ShareDone share_;
  double total_ = 0, done_ = 0, current_ = 0;
};

std::string node_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

/// The part of `wanted` from `begin` on whose cells are of one trace.
std::span<const std::size_t> same_trace(const MatrixPlan& plan, const std::vector<std::size_t>& wanted,
                                        std::size_t begin) {
  assert(begin < wanted.size());
  std::size_t end = begin;
  while (end < wanted.size() && plan.trace_of(wanted[end]) == plan.trace_of(wanted[begin])) ++end;
  return std::span(wanted).subspan(begin, end - begin);
}

/// Names columns by their paths if builds in several folders have one name, or if one has the name of the old build.
void name_by_paths(const MatrixPlan& plan, std::vector<CellAllocator>& columns, const CellAllocator& reference) {
  const std::vector<CellAllocator> all = columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto has_name = [&](const CellAllocator& other) { return other.name == all[i].name; };
    const bool is_old_build = has_name(reference) && plan.allocators[i].name != plan.reference.name;
    if (is_old_build || std::count_if(all.begin(), all.end(), has_name) > 1) columns[i].name = plan.allocators[i].name;
  }
}

/// Drops allocators that are the same as an earlier one: their cells would be the same.
void drop_same(MatrixPlan& plan, std::vector<CellAllocator>& columns, const MatrixSettings& settings) {
  for (std::size_t i = 1; i < columns.size();) {
    const auto is_same = [&](const CellAllocator& other) {
      return other.name == columns[i].name && other.sha256 == columns[i].sha256 && other.prefix == columns[i].prefix &&
             other.settings == columns[i].settings;
    };
    const auto end = columns.begin() + static_cast<std::ptrdiff_t>(i),
               found = std::find_if(columns.begin(), end, is_same);
    if (found == end) {
      ++i;
      continue;
    }
    const Allocator& kept = plan.allocators[static_cast<std::size_t>(found - columns.begin())];
    settings.remark(plan.allocators[i].name + ": is the same build as " + kept.name + ", and is run once");
    plan.allocators.erase(plan.allocators.begin() + static_cast<std::ptrdiff_t>(i));
    columns.erase(end);
  }
}

}  // namespace

void plan_cells(MatrixPlan& plan, const MatrixSettings& settings) {
  std::vector<CellAllocator> columns;
  for (const Allocator& allocator : plan.allocators) columns.push_back(describe_allocator(allocator));
  const auto reference =
      std::find_if(plan.allocators.begin(), plan.allocators.end(),
                   [&plan](const Allocator& allocator) { return allocator.name == plan.reference.name; });
  Cell common{.version = CMT_VERSION,
              .build = build_of_replay(settings.worker),
              .reference = reference == plan.allocators.end()
                               ? describe_allocator(plan.reference)
                               : columns[static_cast<std::size_t>(reference - plan.allocators.begin())],
              .mode = describe_mode(settings.options, settings.trace),
              .plan = describe_plan(settings.options, settings.trace, settings.verifies),
              .machine = this_machine(),
              .node = node_name()};
  if (settings.verifies) common.verification.emplace();
  if (settings.is_gate)
    name_by_paths(plan, columns, common.reference);
  else
    drop_same(plan, columns, settings);
  for (const TraceFile& trace : plan.traces) {
    for (const CellAllocator& column : columns) {
      Cell& cell = plan.cells.emplace_back(common);
      cell.trace.name = trace.name;
      cell.trace.sha256 = trace.sha256;
      cell.allocator = column;
    }
  }
}

bool run_cells(const MatrixPlan& plan, const std::vector<std::size_t>& wanted, const MatrixSettings& settings) {
  assert(std::is_sorted(wanted.begin(), wanted.end()));
  TimeLeft time_left;
  for (std::size_t begin = 0; begin < wanted.size();) {
    const auto cells = same_trace(plan, wanted, begin);
    time_left.add_work(plan.traces[plan.trace_of(cells[0])].weight * (cells.size() + 2));
    begin += cells.size();
  }
  for (std::size_t begin = 0; begin < wanted.size();) {
    const auto cells = same_trace(plan, wanted, begin);
    begin += cells.size();
    const TraceFile& file = plan.traces[plan.trace_of(cells[0])];
    time_left.begin(file.weight * (cells.size() + 2));
    std::vector<Cell> results;
    for (const std::size_t cell : cells) results.push_back(plan.cells[cell]);
    const auto show = [&](const std::string& step, double done) {
      settings.show(file.name + ": " + step + time_left.text(done));
    };
    try {
      if (!run_session(plan, file, cells, settings, show, results)) return false;
    } catch (const std::runtime_error& error) {  // of the trace, or of this machine
      for (Cell& cell : results) {
        cell.outcome = outcomes::not_replayed;
        cell.reason = error.what();
        cell.verification.reset();
      }
    }
    time_left.end();
    for (Cell& cell : results) settings.keep(std::move(cell));
  }
  return true;
}

}  // namespace cmt::replay
