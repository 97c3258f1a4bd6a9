// Checks version 2 of .cmt: what a Writer makes of the key `sampled`, and which programs read it.

#include <doctest/doctest.h>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;

namespace {

Header sampled_header(const std::string& interval = "524288") { return {.metadata = {{"sampled", interval}}}; }

/// Three samples. One is ended, and one is thinned out.
const std::vector<Event> samples{
    {.kind = Kind::malloc, .size = 100, .tag = 1}, {.kind = Kind::malloc, .size = 200, .tag = 2},
    {.kind = Kind::malloc, .size = 300, .tag = 3}, {.kind = Kind::free, .old_tag = 3},
    {.kind = Kind::unsample, .old_tag = 1},        {.kind = Kind::sampling_interval, .size = 1 << 20}};

std::string refusal_of(const Header& header, Format format = Format::cmt) {
  try {
    fixture::written({}, {.format = format}, header);
    return "";
  } catch (const FormatError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("samples: the key `sampled` makes version 2, without it the bytes are those of version 1") {
  CHECK(fixture::written({}, {}, sampled_header())[8] == 2);
  CHECK(fixture::written({}, {}, {.metadata = {{"program", "app"}}})[8] == 1);
}

TEST_CASE("samples: events of sampling come back, and the live samples are those not ended") {
  const std::string bytes = fixture::written(samples, fixture::in_blocks_of(2), sampled_header());
  Reader reader(fixture::file_of(bytes), "app");
  CHECK(reader.header().sampled() == 524288);
  CHECK(reader.totals()->end_live_bytes == 200);
  CHECK(fixture::read_all(bytes).lines == fixture::lines(samples));
}

TEST_CASE("samples: a program that does not know of them is refused, in each way of reading") {
  const std::string bytes = fixture::written(samples, fixture::in_blocks_of(2), sampled_header());
  const std::string refused = "app: a sampled trace, which this program would take for a full one";
  Reader reader(fixture::file_of(bytes), "app");
  CHECK_THROWS_WITH_AS(reader.read(), refused.c_str(), FormatError);
  CHECK_THROWS_WITH_AS(reader.seek(2), refused.c_str(), FormatError);
  reader.accept_samples();
  reader.seek(4);
  CHECK(reader.read().front().kind == Kind::unsample);
}

TEST_CASE(
    "samples: a Writer refuses a wrong interval, a text, events of sampling in a full trace, a falling interval") {
  const std::string wrong = "the key sampled is not a number above 0";
  for (const char* const interval : {"", "0", "-1", "512K", "99999999999999999999"})
    CHECK(refusal_of(sampled_header(interval)) == wrong);
  CHECK(refusal_of(sampled_header(), Format::text) == "a sampled trace has no text form");
  const int fd = fixture::file_of("");
  Writer full(fd, {}), sampled(fd, sampled_header());
  CHECK(!full.add({.kind = Kind::sampling_interval, .size = 1 << 20}));
  CHECK(!full.add({.kind = Kind::unsample}));
  CHECK(sampled.add({.kind = Kind::sampling_interval, .size = 524288}));
  CHECK(!sampled.add({.kind = Kind::sampling_interval, .size = 524287}));
  close(fd);
}

TEST_CASE("samples: a text with the key or with an event of sampling is refused with its line") {
  const auto refused = [](int line) {
    return "app:" + std::to_string(line) + ": a text trace is never sampled: read the .cmt that it was made from";
  };
  CHECK(fixture::read_all("#cmt text=1\n#cmt sampled=524288\nmalloc(8) = <1>\n").error == refused(2));
  for (const char* const line : {"unsample(<1>)\n", "sampling_interval(1048576)\n"})
    for (const unsigned threads : {1u, 2u})
      CHECK(fixture::read_all("malloc(8) = <1>\n" + std::string(line), {.threads = threads}).error == refused(2));
}
