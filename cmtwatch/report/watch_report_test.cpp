// The last lines state the peak, and whether the kernel saw a higher one than the samples did.
#include "cmtwatch/report/watch_report.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

using namespace cmt::watch;

namespace {

/// The report of a command at its end, as text.
std::string end_of(const WatchResult& result, WatchOptions options) {
  std::string path = "/tmp/watch_report.XXXXXX";
  close(mkstemp(path.data()));
  options.command = {"true"};
  Destination destination(path, STDOUT_FILENO);
  std::string text;
  try {
    WatchReport(options, destination).end(result, std::nullopt);
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::runtime_error& error) {
    text = std::string("error: ") + error.what();
  }
  unlink(path.c_str());
  return text;
}

WatchResult one_sample(std::uint64_t bytes) {
  WatchResult result;
  result.samples = 1;
  result.peak.emplace();
  result.peak->bytes = bytes;
  result.peak->processes = 1;
  return result;
}

}  // namespace

TEST_CASE("watch report: a peak that no sample saw is not known, and no number") {
  CHECK(end_of({}, {}) == "peak not known: the command ended before the first sample; VmHWM is not known\n");
  WatchOptions only;
  only.peak = WatchOptions::Peak::only;
  CHECK(end_of({}, only) == "error: peak not known: the command ended before the first sample");
  WatchResult unreadable;
  unreadable.samples = 1;
  CHECK(end_of(unreadable, only) == "error: peak not readable");
}

TEST_CASE("watch report: of resident sets the kernel's mark is what was reached at least") {
  WatchResult result = one_sample(4096);
  result.mark = {.bytes = 1 << 20, .seen_bytes = 4096};
  WatchOptions only;
  only.peak = WatchOptions::Peak::only;
  only.bytes = true;
  CHECK(end_of(result, only) == "4096\n");
  only.metric = Metric::rss;
  CHECK(end_of(result, only) == "1048576\n");
  const std::string text = end_of(result, {});
  CHECK(text.starts_with("peak at least 4.00 KiB pss at 0.000 s ("));
  CHECK(text.ends_with("; samples missed the command's highest resident set, 1.00 MiB (VmHWM)\n"));
}

TEST_CASE("watch report: a mark as high as the samples is no miss") {
  WatchResult result = one_sample(1 << 20);
  result.mark = {.bytes = (1 << 20) + 4096, .seen_bytes = 1 << 20};
  CHECK(end_of(result, {}).starts_with("peak 1.00 MiB pss"));
  CHECK(end_of(result, {}).ends_with("; the command's highest resident set was at least 1.00 MiB (VmHWM)\n"));
  result.mark.at_end = true;
  CHECK(end_of(result, {}).ends_with("; the command's highest resident set was 1.00 MiB (VmHWM)\n"));
}

TEST_CASE("watch report: a mark below what all processes had together tells of no missed peak") {
  WatchResult result = one_sample(8 << 20);
  result.mark = {.bytes = 4 << 20, .seen_bytes = 1 << 20};
  CHECK_FALSE(result.peak_missed());
  result.peak->bytes = 2 << 20;
  CHECK(result.peak_missed());
}
