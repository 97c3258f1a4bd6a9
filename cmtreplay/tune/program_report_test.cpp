#include "cmtreplay/tune/program_report.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace cmt::replay;

namespace {

ProgramRun run_of(std::uint64_t wall, std::uint64_t cpu, std::uint64_t bytes, const std::string& output) {
  return {.wall_ns = wall,
          .cpu_ns = cpu,
          .peak_bytes = bytes + 100,
          .mean_bytes = bytes / 2 + 100,
          .peak_anonymous_bytes = bytes,
          .mean_anonymous_bytes = bytes / 2,
          .output_sha256 = output};
}

ProgramReport report_of(const ProgramRun& reference, const ProgramRun& other, std::size_t rounds) {
  ProgramReport report{.command = "program", .reference = "libc"};
  report.rows.push_back({.name = "libc", .runs = std::vector<ProgramRun>(rounds, reference)});
  report.rows.push_back({.name = "other", .runs = std::vector<ProgramRun>(rounds, other)});
  return report;
}

Ratio surely(double ratio) { return {.ratio = ratio, .low = ratio, .high = ratio, .interval = interval_of_95}; }

}  // namespace

TEST_CASE("program: ratios are of rounds in which both ran well, and a run with a fault counts nowhere") {
  ProgramReport report = report_of(run_of(100, 50, 1000, "a"), run_of(50, 100, 800, "a"), 6);
  report.rows[1].runs[2] = run_of(1, 1, 1, "a");
  report.rows[1].runs[2].fault = "exit status 1";
  fill_rows(report, {});
  CHECK(report.rows[1].wall.ratio == doctest::Approx(0.5));
  CHECK(report.rows[1].cpu.high == doctest::Approx(2));
  CHECK(report.rows[1].peak.ratio == doctest::Approx(0.8));
  CHECK(report.rows[1].good_runs() == 5);
  CHECK(has_runs_of_all(report));
  CHECK(report.rows[1].warnings == std::vector<std::string>{"1 run of 6 left out: exit status 1"});
}

TEST_CASE("program: runs with another output are left out, unless the default's own outputs differ") {
  ProgramReport report = report_of(run_of(100, 50, 1000, "a"), run_of(50, 100, 800, "b"), 3);
  fill_rows(report, {});
  CHECK(report.rows[1].good_runs() == 0);
  CHECK_FALSE(has_runs_of_all(report));
  CHECK_FALSE(report.rows[1].wall.is_known());
  report = report_of(run_of(100, 50, 1000, "a"), run_of(50, 100, 800, "b"), 3);
  report.rows[0].runs[1].output_sha256 = "c";
  fill_rows(report, {});
  CHECK(report.rows[1].good_runs() == 3);
}

TEST_CASE("program: the number of processes at the peak is a reason for the peak alone") {
  ProgramReport report = report_of(run_of(100, 50, 1000, "a"), run_of(100, 50, 800, "a"), 6);
  report.rows[1].runs[3].processes_at_peak = 3;
  const Prediction replay{.peak_bytes = 100, .mean_bytes = 50, .default_peak_bytes = 500, .default_mean_bytes = 250};
  fill_rows(report, {Prediction(), replay});
  REQUIRE(report.rows[1].warnings.size() == 2);
  CHECK(report.rows[1].warnings[0].ends_with("and at the peak there are 3"));
  CHECK(report.rows[1].warnings[1].ends_with("the replay's prediction"));
}

TEST_CASE("program: a prediction is the default's memory and the replays' difference; one that is wrong is reported") {
  ProgramReport report = report_of(run_of(100, 50, 1000, "a"), run_of(50, 100, 800, "a"), 6);
  const Prediction replay{
      .cpu = surely(0.9), .peak_bytes = 300, .mean_bytes = 100, .default_peak_bytes = 500, .default_mean_bytes = 300};
  fill_rows(report, {Prediction(), replay});
  CHECK(report.rows[1].predicted_peak.predicted_bytes == 800);
  CHECK(report.rows[1].predicted_peak.error() == doctest::Approx(0));
  CHECK(report.rows[1].predicted_mean.predicted_bytes == 300);
  REQUIRE(report.rows[1].warnings.size() == 2);
  CHECK(report.rows[1].warnings[0] == "the mean is 33.3 % above the replay's prediction");
  CHECK(report.rows[1].warnings[1] ==
        "the program takes more processor time than with the default, and the replay predicted the opposite");
}

TEST_CASE("program: a mean is over the time that the program takes with the allocator") {
  // Two states of 100 ns each. With the allocator the way to the second one takes 300 ns longer.
  CellSeries of_default{
      .event = {0, 1, 2, 3, 4},
      .live_bytes = {0, 0, 0, 0, 0},
      .resident_bytes = {0, 1000, 9, 3000, 3000},
      .times = CellTimes{
          .time_ns = {0, 100, 150, 200, 300}, .stays_ns = {0, 100, 0, 100, 0}, .clock_ns = {0, 10, 20, 20, 20}}};
  CellSeries series = of_default;
  CHECK(mean_shift(series, of_default, 1, 300) == 0);
  series.times->clock_ns = {0, 10, 320, 320, 320};
  CHECK(mean_shift(series, of_default, 1, 300) == (100 * 1000 + 300 * 2000 + 100 * 3000) / 500 - 2000);
  CHECK(mean_shift(series, of_default, 1, 0) == 0);
  CHECK(mean_shift(series, of_default, 1, -300) == 0);
  series.resident_bytes = {0, 1000, 9, 1000, 1000};
  CHECK(mean_shift(series, of_default, 1, 300) == 0);
  series.times.reset();
  CHECK(mean_shift(series, of_default, 1, 300) == 0);
}

TEST_CASE("program: a command without a shell's characters is run without a shell") {
  CHECK(command_words("app --x  y") == std::vector<std::string>{"app", "--x", "y"});
  CHECK(command_words("app | wc") == std::vector<std::string>{"/bin/sh", "-c", "app | wc"});
  const auto shell = [](const std::string& command) { return command_words(command).back(); };
  CHECK(shell("env A=1 true") == "exec env A=1 true");
  CHECK(shell("/bin/sh -c 'a; b' > \"x|y\"") == "exec /bin/sh -c 'a; b' > \"x|y\"");
  for (const char* const several :
       {"env true; true", "env $(true)", "A=1 env true", "A=/b env true", "echo 'a'", "nowhere '1'", "env \\'true & '"})
    CHECK(shell(several) == several);
}

TEST_CASE("program: a program with a malloc of its own is not served by the C library") {
  ProgramReport report = report_of(run_of(100, 50, 1000, "a"), run_of(50, 100, 800, "a"), 2);
  report.rows[0].runs[0].own_malloc = report.rows[0].runs[1].own_malloc = "libjemalloc.so.2";
  fill_rows(report, {});
  CHECK(report.rows[0].warnings ==
        std::vector<std::string>{"the program has libjemalloc.so.2 of its own, which serves it in place of libc; "
                                 "--alloc=libc.so.6 runs it on the C library's malloc"});
  report = report_of(run_of(100, 50, 1000, "a"), run_of(100, 50, 800, "a"), 2);
  report.rows[0].runs[0].own_malloc = "libjemalloc.so.2";
  const Prediction replay{.peak_bytes = 100, .mean_bytes = 50, .default_peak_bytes = 500, .default_mean_bytes = 250};
  fill_rows(report, {Prediction(), replay});
  CHECK(std::isnan(report.rows[1].predicted_peak.predicted_bytes));
  CHECK(report.rows[1].warnings.empty());
  REQUIRE(report.rows[0].warnings.size() == 1);
  CHECK(report.rows[0].warnings[0].find(", so the replay predicts nothing for any row; --alloc=libc.so.6") !=
        std::string::npos);
}
