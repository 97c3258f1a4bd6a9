// Each form of file gives the same series, and a file of another form is refused with its name.
#include "cmtwatch/recording/memory_series.h"

#include <doctest/doctest.h>

#include "cmt/error.h"

using namespace cmt::watch;

TEST_CASE("memory series: a watch's JSON, without the samples that could not be read") {
  const MemorySeries series = parse_series(
      R"({"schema": "cmt.watch/1", "metric": "pss", "samples": [{"begin_ns": 5, "bytes": 10}, {"begin_ns": 6, "bytes": null},
          {"begin_ns": 7, "bytes": 30}, {"begin_ns": 8, "bytes": 20}]})",
      "a.json");
  CHECK(series.metric == "pss");
  CHECK(series.time_ns == std::vector<std::int64_t>{5, 7, 8});
  CHECK(series.peak_index() == 1);
}

TEST_CASE("memory series: LL-Tracket's pairs are milliseconds and MiB, newest first") {
  for (const char* text : {"[[2000, 2.5], [1000, 1]]", R"({"data": [[2000, 2.5], [1000, 1]]})"}) {
    const MemorySeries series = parse_series(text, "t.json");
    CHECK(series.time_ns == std::vector<std::int64_t>{1'000'000'000, 2'000'000'000});
    CHECK(series.bytes == std::vector<std::uint64_t>{1 << 20, 5 << 19});
  }
}

TEST_CASE("memory series: an exported recording, its processes added up") {
  const MemorySeries series = parse_series(
      R"({"schema": "cmt.recording/1", "columns": {"ticks": ["id", "begin_ns"], "samples": ["tick_id", "proportional_bytes", "resident_bytes"]},
          "ticks": [[1, 10], [2, 20], [3, 30]],
          "processes": [{"samples": [[1, null, 5], [2, null, 6]]}, {"samples": [[2, null, 7], [2, null, null]]}]})",
      "e.json");
  CHECK(series.metric == "rss");
  CHECK(series.time_ns == std::vector<std::int64_t>{10, 20});
  CHECK(series.bytes == std::vector<std::uint64_t>{5, 13});
}

TEST_CASE("memory series: an exported recording counts what processes share once, where it knows it") {
  const auto of_samples = [](const std::string& second) {
    return parse_series(
        R"({"schema": "cmt.recording/1", "columns": {"ticks": ["id", "begin_ns"],
              "samples": ["tick_id", "proportional_bytes", "resident_bytes"]},
            "ticks": [[1, 10]], "processes": [{"samples": [[1, 4, 6]]}, {"samples": [)" +
            second + "]}]}",
        "e.json");
  };
  CHECK(of_samples("[1, 3, 7]").metric == "pss");
  CHECK(of_samples("[1, 3, 7]").bytes == std::vector<std::uint64_t>{7});
  CHECK(of_samples("[1, null, 7]").metric == "pss or rss");
  CHECK(of_samples("[1, null, 7]").bytes == std::vector<std::uint64_t>{11});
}

TEST_CASE("memory series: what is none is refused with its name") {
  CHECK_THROWS_WITH_AS(parse_series("{", "x"), "x: neither a recording nor a series of memory in JSON",
                       cmt::FormatError);
  CHECK_THROWS_WITH_AS(parse_series("{}", "x"), "x: no series of memory", cmt::FormatError);
  CHECK_THROWS_AS(parse_series("[[1, 2], [3, 4]]", "x"), cmt::FormatError);
  CHECK_THROWS_AS(parse_series("[1]", "x"), cmt::FormatError);
  CHECK_THROWS_AS(parse_series(R"({"schema": "cmt.recording/1"})", "x"), cmt::FormatError);
  CHECK_THROWS_WITH_AS(parse_series(R"({"schema": "cmt.recording/1", "columns": {"ticks": [], "samples": []}})", "x"),
                       "x: no column tick_id", cmt::FormatError);
  for (const char* const wrong :
       {R"({"schema": "cmt.watch/1", "metric": "pss", "samples": [{"begin_ns": 5, "bytes": -1}]})",
        R"({"schema": "cmt.watch/1", "metric": "pss", "samples": [{"begin_ns": 5, "bytes": 1e300}]})",
        R"({"schema": "cmt.watch/1", "metric": "pss", "samples": [{"begin_ns": 1e19, "bytes": 1}]})", "[[1e300, 1]]",
        "[[1, -1]]", "[[1, 1e300]]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_series(wrong, "x"), cmt::FormatError);
  }
  CHECK_THROWS_AS(parse_series(R"({"schema": "cmt.watch/1"})", "x"), cmt::FormatError);
}

TEST_CASE("memory series: none has no peak") { CHECK(parse_series("[]", "x").peak_index() == 0); }
