// Tests the verdicts: certain, not certain, or too few runs.
#include "cmtreplay/report/comparison.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <regex>

#include "cmtreplay/report/warnings.h"

using namespace cmt::replay;

namespace {

AllocatorResult result_of(const std::string& name, const std::vector<std::uint64_t>& walls,
                          const std::vector<std::uint64_t>& peaks) {
  AllocatorResult result{.allocator = {.name = name}};
  for (const std::uint64_t wall : walls) result.timed.push_back({.wall_ns = wall});
  for (const std::uint64_t peak : peaks) result.memory_runs.push_back({.peak = peak});
  if (!peaks.empty()) result.memory = MemoryRun{.peak_at_marks_bytes = peaks[peaks.size() / 2]};
  return result;
}

/// Makes `count` times around `middle`. Some rounds are slower, and they are the same rounds in each call.
std::vector<std::uint64_t> times(std::uint64_t middle, std::size_t count = 12) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(middle * (100 + i * 7 % 30) / 100);
  return all;
}

using Lines = std::vector<std::string>;

/// The table of made-up results on this trace.
std::string table_of(const std::vector<AllocatorResult>& results, const std::string& text) {
  const PreparedTrace trace(
      [&text](PreparedTrace::Stacks) {
        const int fd = memfd_create("trace", MFD_CLOEXEC);
        REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        lseek(fd, 0, SEEK_SET);
        return cmt::Reader(fd, "test.trace");
      },
      {.prepared_bytes_max = 1 << 20}, [](std::uint64_t, std::uint64_t) {});
  const ReplayOptions options;
  return report_text({options, trace, {results, result_of("null", times(1), {}), false, 3.25, 2}});
}

constexpr const char* one_call = "malloc(8) = 1000<1>\n";

/// Whether the text has a line that begins with these words, one blank between each two.
bool has_line(const std::string& text, const std::string& words) {
  return std::regex_search(text, std::regex("(^|\n)" + std::regex_replace(words, std::regex(" "), " +")));
}

}  // namespace

TEST_CASE("comparison: the table's ratio is that of the verdict, and orders the table") {
  // The medians are 100 and 101. In most rounds b is 10 % faster.
  const auto table = table_of({result_of("libc", {100, 100, 100, 100, 100, 200, 200, 200}, {}),
                               result_of("b", {110, 110, 90, 90, 90, 180, 180, 180}, {})},
                              one_call);
  CHECK(has_line(table, "b 110 ns .* 0.90 "));
  CHECK(has_line(table, "libc 100 ns .* 1.00 "));
  CHECK(table.find("\nb ") < table.find("\nlibc "));
  CHECK(has_line(table, "time of this recording: b and libc cannot be told apart"));
  const auto result = result_of("b", {110, 90}, {}), other = result_of("c", {100, 70}, {});
  CHECK(time_ratio(result, other) == doctest::Approx(1 / time_ratio(other, result)));
}

TEST_CASE("comparison: outliers and a busy machine have a line with the rule") {
  auto result = result_of("libc", times(1000), {});
  CHECK(table_of({result}, one_call).find("outliers") == std::string::npos);
  result.timed[3].wall_ns *= 9;
  CHECK(has_line(table_of({result}, one_call),
                 "outliers \\(more than 5.2 median absolute deviations from the median\\): libc 1 of 12 runs\n"));
  for (TimedSample& sample : result.timed) sample.cpu_ns = 95, sample.lost_ns = 5;
  CHECK(table_of({result}, one_call).find("busy") == std::string::npos);
  for (TimedSample& sample : result.timed) sample.lost_ns = 5 * 19;
  CHECK(has_line(table_of({result}, one_call),
                 "busy machine: the runs waited for 50 % of their time, for a processor or in the allocator \\(load "
                 "average 3.2, 2 CPUs\\)\n"));
  CHECK(table_warnings(result, {}).size() == 2);
}

TEST_CASE("comparison: the allocator's part of the program's processor time is said where it is known") {
  auto result = result_of("libc", times(1000), {});
  for (TimedSample& sample : result.timed) sample.cpu_ns = 21'000'000;
  const std::string stretch = "#stretch elapsed=2000000000 ran=1000000000 waited=0 held=0 busy=1000000000\n";
  const std::string line =
      "the allocator with its page faults takes about 2.1 % of the recorded program's 1.00 s of processor time: ";
  CHECK(has_line(table_of({result}, one_call + stretch), line + "faster calls save at most that.*--command.*\n"));
  CHECK_FALSE(has_line(table_of({result}, one_call), line));
  CHECK_FALSE(has_line(table_of({result}, "#cmt slice=1:2\n" + (one_call + stretch)), line));
  CHECK_FALSE(has_line(table_of({result}, "#cmt allocator=libjemalloc.so.2\n" + (one_call + stretch)), line));
  result.allocator = {.name = "jemalloc", .library = "/lib/libjemalloc.so.2"};
  CHECK(has_line(table_of({result}, "#cmt allocator=libjemalloc.so.2\n" + (one_call + stretch)), line));
}

TEST_CASE("comparison: rounds are compared, so noise that all share hides nothing") {
  const auto pairs = compare_times({result_of("a", times(1000), {}), result_of("b", times(1100), {})});
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].less == "a");
  CHECK(pairs[0].is_certain);
  CHECK(verdict_lines(pairs, "time: ", "faster") == Lines{"time: a is 9.1 % (9.1 to 9.1) faster than b"});
}

TEST_CASE("comparison: every pair, and those that differ by chance cannot be told apart") {
  auto mixed = times(1000);
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = mixed[i] * (i % 2 == 0 ? 102 : 99) / 100;
  const auto pairs =
      compare_times({result_of("slow", times(2000), {}), result_of("a", times(1000), {}), result_of("b", mixed, {})});
  REQUIRE(pairs.size() == 3);
  const Lines lines = verdict_lines(pairs, "time: ", "faster");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "time: a is 50 % (50 to 50) faster than slow");
  CHECK(lines[1].starts_with("time: b is "));
  CHECK(lines[2].starts_with("time: a and b cannot be told apart ("));
}

TEST_CASE("comparison: few runs give no verdict, and those that refused calls or died none either") {
  auto refusing = result_of("refuses", times(10), {});
  refusing.timed[0].refused_calls = 1;
  auto dead = result_of("dead", times(10), {});
  dead.death = Death{};
  const auto pairs =
      compare_times({result_of("a", times(10, 5), {}), result_of("b", times(99, 5), {}), refusing, dead});
  REQUIRE(pairs.size() == 1);
  CHECK(verdict_lines(pairs, "time: ", "faster") == Lines{"time: a and b: too few runs for a verdict"});
  CHECK(compare_times({}).empty());
}

TEST_CASE("comparison: peaks differ where their ranges do not meet") {
  const std::uint64_t mib = 1 << 20;
  const auto pairs = compare_peaks({result_of("a", {1}, {100 * mib, 102 * mib, 101 * mib}),
                                    result_of("b", {1}, {200 * mib, 202 * mib, 204 * mib}),
                                    result_of("c", {1}, {201 * mib, 203 * mib, 202 * mib})});
  CHECK(verdict_lines(pairs, "peak: ", "lower") ==
        Lines{"peak: a is 50 % (47 to 52) lower than b, 50 % (48 to 52) than c",
              "peak: b and c cannot be told apart (-4.6 to 4.4 %)"});
}

TEST_CASE("comparison: peaks that differ by no more than a replay from its program cannot be told apart") {
  const std::uint64_t kib = 1024;
  const auto is_certain = [](std::uint64_t less, std::uint64_t more) {
    return compare_peaks({result_of("a", {1}, {less, less}), result_of("b", {1}, {more, more})})[0].is_certain;
  };
  CHECK_FALSE(is_certain(97'900 * kib, 100'000 * kib));
  CHECK(is_certain(96'000 * kib, 100'000 * kib));
  CHECK_FALSE(is_certain(440 * kib, 510 * kib));
  CHECK(is_certain(440 * kib, 710 * kib));
  CHECK_FALSE(is_certain(10 * kib, 60 * kib));
}
