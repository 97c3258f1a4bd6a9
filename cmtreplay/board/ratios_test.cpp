// Tests ratios with their intervals, and the board that is made of them.
#include "cmtreplay/board/ratios.h"

#include <doctest/doctest.h>

#include <cmath>

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
  // Both allocators were slow in the second round.
  const Ratio ratio = ratio_of(time_samples(made_up("t", "a", {200, 2000, 202}, {100, 1000, 100})));
  CHECK(ratio.ratio == doctest::Approx(2));
  CHECK(ratio.low == doctest::Approx(2));
  CHECK(ratio.high == doctest::Approx(2.02));
}

TEST_CASE("an interval of fewer than six runs is their range, and is called so") {
  const RatioSamples few{.runs = {20, 21, 22}, .reference = {10, 10, 11}};
  const Ratio memory = ratio_of(few);
  CHECK(memory.interval == "range of 3 runs");
  CHECK(memory.low == doctest::Approx(20.0 / 11));
  CHECK(memory.high == doctest::Approx(2.2));
  CHECK(ratio_of({.pairs = {1, 2, 3, 4, 5}}).interval == "range of 5 runs");
  CHECK(ratio_of({.pairs = {1, 2, 3, 4, 5, 6}}).interval == "95 %");
  CHECK(ratio_of({.pairs = {3}}).interval == "1 run");
  const Ratio mean = geometric_mean({few, {.runs = {5, 5}, .reference = {10, 10}}});
  CHECK(mean.interval == "range of 2 runs");
  CHECK(mean.ratio == doctest::Approx(std::sqrt(2.1 * 0.5)));
  CHECK(mean.high == doctest::Approx(std::sqrt(2.2 * 0.5)));
  CHECK(geometric_mean({{.pairs = {1, 2, 3, 4, 5}}, {.pairs = {1, 2, 3, 4, 5}}}).interval == "95 %");
  CHECK(ratio_of({}).interval.empty());
}

TEST_CASE("a geometric mean is of all traces or not known") {
  const RatioSamples four{.pairs = {4, 4, 4}}, one{.pairs = {1, 1}}, none;
  CHECK(geometric_mean({four, one}).ratio == doctest::Approx(2));
  CHECK_FALSE(geometric_mean({four, none}).is_known());
  CHECK_FALSE(geometric_mean({}).is_known());
}

TEST_CASE("the deviation of a ratio is of its logarithm, and less for a mean of several") {
  const RatioSamples samples{.pairs = {1, std::exp(0.2)}};
  CHECK(log_deviation({samples}) == doctest::Approx(0.2 / std::sqrt(2)));
  CHECK(log_deviation({samples, samples}) == doctest::Approx(0.1));
  CHECK(std::isnan(log_deviation({samples, {.pairs = {1}}})));
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

TEST_CASE("builds' columns have their paths where these differ") {
  Cell old = made_up("t", "a", {3}, {1}), now = old;
  old.allocator.sha256 = "0123456789";
  now.allocator.sha256 = "abcdefabcd";
  old.allocator.asked = "./old/a";
  now.allocator.asked = "./new/a";
  const Board board = make_board({old, now}, {});
  CHECK(board.allocators[0].name == "./old/a");
  CHECK(board.allocators[1].name == "./new/a");
}

TEST_CASE("libc is one column, and a line tells its builds; of others each build is one") {
  const auto measured_on = [](const std::string& node, const std::string& trace, const std::string& allocator) {
    Cell cell = made_up(trace, allocator, {3}, {1});
    cell.node = node;
    cell.allocator.sha256 = cell.reference.sha256 = "0123456789" + node;
    cell.machine.libc = "glibc 2.3" + node;
    return cell;
  };
  const Board board = make_board({measured_on("1", "t", "libc"), measured_on("2", "u", "libc"),
                                  measured_on("1", "t", "a"), measured_on("1", "u", "a")},
                                 {});
  CHECK(board.allocators.size() == 2);
  CHECK(board.missing == 0);
  REQUIRE(board.builds.size() == 2);
  CHECK(board_text(board).find("libc is of several builds, not told apart here: glibc 2.31, 01234567 on 1 (3 cells); "
                               "glibc 2.32, 01234567 on 2 (1 cell)\n") != std::string::npos);
  const Board two = make_board({measured_on("1", "t", "a"), measured_on("2", "u", "a")}, {});
  CHECK(two.allocators.size() == 2);
  CHECK(two.missing == 2);
  CHECK(board_text(two).find("a is of several builds, a column each: 01234567 on 1 (1 cell); 01234567 on 2") !=
        std::string::npos);
}

TEST_CASE("of several cells for a place that of the expected build is shown") {
  Cell old = made_up("t", "a", {3}, {1}), now = made_up("t", "a", {5}, {1});
  old.build = "1";
  now.build = "2";
  CHECK(make_board({old, now}, {now}).at(0, 0).time.ratio == doctest::Approx(5));
  CHECK(make_board({old, now}, {old}).at(0, 0).time.ratio == doctest::Approx(3));
  now.plan = CellPlan{.runs = 1};
  const Board board = make_board({old, now}, {now});
  CHECK(board.left_out == 1);
  CHECK(board.at(0, 0).time.ratio == doctest::Approx(5));
  CHECK_THROWS(make_board({old, now}, {}));
}

TEST_CASE("a warning's kind is a line with its number of cells") {
  Cell one = made_up("t", "a", {3}, {1}), other = made_up("u", "a", {3}, {1});
  one.warnings = std::vector<Warning>{{"calls were left out", "2 calls were left out"},
                                      {"calls were left out", "3 calls were left out"}};
  other.warnings = std::vector<Warning>{{"calls were left out", "7 calls were left out"}};
  CHECK(board_text(make_board({one, other}, {})).find("\n2 cells: calls were left out\n") != std::string::npos);
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
