#include "cmtreplay/board/ratios.h"

#include <doctest/doctest.h>

#include "cmtreplay/board/board.h"

using namespace cmt::replay;

namespace {

Cell made_up(const std::string& trace, const std::string& allocator, std::vector<std::uint64_t> wall_ns,
             std::vector<std::uint64_t> reference_ns) {
  Cell cell{.outcome = "measured"};
  cell.trace = {.name = trace, .sha256 = trace, .calls = 10};
  cell.allocator.name = allocator;
  cell.reference.name = "libc";
  cell.runs.minor_faults = wall_ns;
  cell.runs.wall_ns = std::move(wall_ns);
  cell.reference_runs.wall_ns = std::move(reference_ns);
  cell.runs.memory = {{.peak = 300, .mean = 200}};
  cell.reference_runs.memory = {{.peak = 100, .mean = 100}};
  return cell;
}

}  // namespace

TEST_CASE("runs of a round are compared with each other") {
  // The second round was slow for both.
  const Ratio ratio = ratio_of(time_samples(made_up("t", "a", {200, 2000, 202}, {100, 1000, 100})));
  CHECK(ratio.ratio == doctest::Approx(2));
  CHECK(ratio.low == doctest::Approx(2));
  CHECK(ratio.high == doctest::Approx(2.02));
}

TEST_CASE("a geometric mean is of all traces or not known") {
  const RatioSamples four{.pairs = {4, 4, 4}}, one{.pairs = {1, 1}}, none;
  CHECK(geometric_mean({four, one}).ratio == doctest::Approx(2));
  CHECK_FALSE(geometric_mean({four, none}).is_known());
  CHECK_FALSE(geometric_mean({}).is_known());
}

TEST_CASE("memory is the ratio of the medians of the runs") {
  const Cell cell = made_up("t", "a", {1}, {1});
  CHECK(ratio_of(memory_samples(cell, &MemoryFigures::peak)).ratio == doctest::Approx(3));
  CHECK_FALSE(ratio_of(fragmentation_samples(cell)).is_known());
}

TEST_CASE("an allocator that crashes on most traces is not ranked, and takes no trace from the others") {
  std::vector<Cell> cells;
  for (const char* const trace : {"t", "u", "v"}) {
    cells.push_back(made_up(trace, "libc", {10, 10}, {10, 10}));
    cells.push_back(made_up(trace, "good", {20, 20}, {10, 10}));
    cells.push_back(made_up(trace, "bad", {5, 5}, {10, 10}));
    if (trace[0] == 't') continue;
    cells.back().outcome = "died";
    cells.back().reason = "at event 1 of 2: signal 11";
  }
  const Board board = make_board(cells, {});
  CHECK(board.counted_traces == 3);
  CHECK(board.allocators[2].time.ratio == doctest::Approx(2));
  CHECK_FALSE(board.allocators[1].is_ranked);
  CHECK(board.at(1, 1).state == "died: at event 1 of 2: signal 11");
}

TEST_CASE("cells that are expected and not there are missing") {
  const std::vector<Cell> expected{made_up("t", "libc", {}, {}), made_up("t", "a", {}, {})};
  const Board board = make_board({made_up("t", "a", {3}, {1}), made_up("other", "a", {3}, {1})}, expected);
  CHECK(board.missing == 1);
  CHECK(board.at(0, 0).state == "missing");
  CHECK(board.at(0, 1).time.ratio == doctest::Approx(3));
}

TEST_CASE("a builds' column has the beginning of its hash where two have one name") {
  Cell old = made_up("t", "a", {3}, {1}), now = old;
  old.allocator.sha256 = "0123456789";
  now.allocator.sha256 = "abcdefabcd";
  const Board board = make_board({old, now}, {});
  CHECK(board.allocators[0].name == "a (01234567)");
  CHECK(board.allocators[1].name == "a (abcdefab)");
}

TEST_CASE("sessions whose reference took other times tell by how much nodes differ") {
  Cell one = made_up("t", "a", {3}, {100}), other = made_up("t", "b", {3}, {110});
  one.session = "1";
  other.session = "2";
  CHECK(make_board({one, other}, {}).node_spread == doctest::Approx(0.1));
}

TEST_CASE("names with Markdown's and HTML's characters are escaped") {
  const std::string text = board_markdown(make_board({made_up("t|<b>", "a\n# x", {3}, {1})}, {}));
  CHECK(text.find("t\\|\\<b\\>") != text.npos);
  CHECK(text.find("\n# x") == text.npos);
}
