// Tests the keys of cells: equal where a cell may be reused, different where it may not.
#include "cmtreplay/matrix/cell.h"

#include <doctest/doctest.h>

#include "cmtreplay/matrix/cell_options.h"

using namespace cmt::replay;

namespace {

Cell planned() {
  Cell cell{.build = "b"};
  cell.trace = {.name = "t", .sha256 = "0123456789"};
  cell.allocator = {.name = "a", .sha256 = "abcdef"};
  cell.reference = {.name = "libc"};
  cell.mode = {.order = "free", .touch = "page", .clock = "memory"};
  cell.plan = CellPlan{.runs = 2, .memory_runs = 2, .seed = 1, .timeout_s = 60, .operations = "auto"};
  return cell;
}

/// Whether the key depends on what `change` changes.
template <class Change>
bool makes_another(Change change) {
  Cell cell = planned();
  change(cell);
  return cell_key(cell) != cell_key(planned());
}

}  // namespace

TEST_CASE("a cell's key is of trace, allocator, builds, mode and plan, and of nothing else") {
  CHECK(cell_file_name(planned()).starts_with("t-01234567.a-"));
  CHECK(makes_another([](Cell& cell) { cell.trace.sha256 = "9"; }));
  CHECK(makes_another([](Cell& cell) { cell.allocator.sha256 = "9"; }));
  CHECK(makes_another([](Cell& cell) { cell.allocator.settings = {"A=1"}; }));
  CHECK(makes_another([](Cell& cell) { cell.build = "c"; }));
  CHECK(makes_another([](Cell& cell) { cell.mode.cpus = "0"; }));
  CHECK(makes_another([](Cell& cell) { cell.mode.touch = "none"; }));
  CHECK(makes_another([](Cell& cell) { cell.plan->runs = 3; }));
  CHECK(makes_another([](Cell& cell) { cell.plan->seed = 3; }));
  CHECK(makes_another([](Cell& cell) { cell.plan->timeout_s = 3; }));
  CHECK(makes_another([](Cell& cell) { cell.verification.emplace(); }));
  CHECK_FALSE(makes_another([](Cell& cell) { cell.trace.name = "copy"; }));
  CHECK_FALSE(makes_another([](Cell& cell) { cell.allocator.asked = "./a"; }));
  CHECK_FALSE(makes_another([](Cell& cell) { cell.node = "n"; }));
  CHECK_FALSE(makes_another([](Cell& cell) { cell.reference.sha256 = "9"; }));  // libc, in which nodes may differ
}

TEST_CASE("the options of a cell are those of a command line") {
  Cell cell = planned();
  CHECK(options_text(cell) == "--runs=2");
  cell.mode = {.order = "strict", .touch = "none", .clock = "none", .pace = 2.5, .one_thread = true, .cpus = "0,2"};
  cell.plan->seed = 3;
  CHECK(options_text(cell) == "--runs=2 --seed=3 --threads=1 --order=strict --pace=x2.5 --touch=none --pin=0,2");
  cell = planned();
  cell.plan =
      CellPlan{.budget_ns = 10'000'000'000, .memory_runs = 3, .seed = 1, .timeout_s = 9, .operations = "stream"};
  CHECK(options_text(cell) == "--budget=10s --timeout=9s --stream");
  cell.plan.reset();
  CHECK(options_text(cell) == "of an older version");
}
