// A text trace as a whole: tags for blocks that have none, header lines, and the end.

#include <doctest/doctest.h>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using Texts = std::vector<std::string>;

TEST_CASE("text: blocks without tags get them, from 1") {
  const auto read =
      fixture::read_all("malloc(8) = 10\nmalloc(8) = 20\nrealloc(10, 9) = 10\nfree(20)\nfree(10)\nfree(0)\n");
  CHECK(read.lines == Texts{"malloc(8) = 10<1>", "malloc(8) = 20<2>", "realloc(10<1>, 9) = 10<3>", "free(20<2>)",
                            "free(10<3>)", "free(0)"});
  CHECK(read.defects == 0);
}

TEST_CASE("text: a block without a tag among blocks with tags gets one above the last") {
  const auto read = fixture::read_all("malloc(8) = 10<41>\nmalloc(8) = 20\nfree(20)\n");
  CHECK(read.lines == Texts{"malloc(8) = 10<41>", "malloc(8) = 20<42>", "free(20<42>)"});
}

TEST_CASE("text: a free where no block lives is dropped, and counted") {
  const auto read = fixture::read_all("malloc(8) = 10\nfree(20)\nfree(10)\nfree(10)\n");
  CHECK(read.lines == Texts{"malloc(8) = 10<1>", "free(10<1>)"});
  CHECK(read.messages ==
        Texts{"app:2: no block lives at this address: dropped", "app:4: no block lives at this address: dropped"});
}

TEST_CASE("text: a realloc where no block lives is an allocation of that size") {
  const auto read = fixture::read_all("realloc(20, 8) = 30\nreallocarray(40, 2, 8) = 50\n");
  CHECK(read.lines == Texts{"malloc(8) = 30<1>", "calloc(2, 8) = 50<2>"});
  CHECK(read.defects == 2);
}

TEST_CASE("text: an allocation at a live address ends the block there first") {
  const auto read = fixture::read_all("malloc(8) = 10\nmalloc(9) = 10\n");
  CHECK(read.lines == Texts{"malloc(8) = 10<1>", "free(10<1>)", "malloc(9) = 10<2>"});
  CHECK(read.messages == Texts{"app:2: a block lives at this address already: ended first"});
}

TEST_CASE("text: a realloc that was refused leaves its block alive, one to 0 does not") {
  const auto read = fixture::read_all("malloc(8) = 10\nrealloc(10, 99) = 0\nrealloc(10, 0) = 0\nmalloc(8) = 10\n");
  CHECK(read.lines ==
        Texts{"malloc(8) = 10<1>", "realloc(10<1>, 99) = 0", "realloc(10<1>, 0) = 0", "malloc(8) = 10<2>"});
  CHECK(read.defects == 0);
}

TEST_CASE("text: with a header, the end says whether the recording broke off; without an end it did") {
  CHECK(!fixture::read_all("#cmt text=1\n#cmt end=complete\n").truncated);
  CHECK(fixture::read_all("#cmt text=1\n#cmt end=truncated\n").truncated);
  CHECK(fixture::read_all("#cmt text=1\n").truncated);
  CHECK(!fixture::read_all("malloc(8) = 1<1>\n").truncated);
}

TEST_CASE("text: stretches of the recording come back, and a line that is not whole is a comment") {
  const std::string text =
      "#cmt text=1\nmalloc(8) = 10<1>\n#stretch elapsed=20 ran=5 waited=9 held=1 busy=15\n"
      "#stretch elapsed=20\n#stretch elapsed=7 ran=0 waited=0 held=0 busy=0\n#cmt end=complete\n";
  for (const unsigned threads : {1u, 2u}) {
    Reader reader(fixture::file_of(text), "app", {.threads = threads});
    while (!reader.read().empty()) continue;
    CHECK(reader.defects() == 0);
    CHECK(reader.stretches() == std::vector<RunStretch>{{20, 5, 9, 1, 15}, {.elapsed_ns = 7}});
  }
}

TEST_CASE("text: another version and too many header lines are refused, metadata too late is dropped") {
  CHECK(fixture::read_all("#cmt text=2\n").error == "app:1: text version 2; this reader knows version 1");
  std::string many = "#cmt text=1\n";
  for (int i = 0; i < 1025; ++i) many += "#cmt k=v\n";
  CHECK(fixture::read_all(many).error == "app:1026: more than 1024 header lines");
  CHECK(fixture::read_all("free(0)\n#cmt pid=1\n").messages == Texts{"app:2: metadata after the first event: dropped"});
}

TEST_CASE("text: what is binary, or one endless line, is refused") {
  CHECK(fixture::read_all(std::string_view("malloc\0", 7)).error == "app: neither a .cmt nor a text trace");
  CHECK(fixture::read_all(std::string(1100000, 'x')).error == "app:1: a line of more than 1 MiB: not a trace");
}

TEST_CASE("text: a strict reader stops at the first defect") {
  ReadOptions options;
  options.strict = true;
  CHECK(fixture::read_all("malloc(8) = 10\nfree(20)\n", options).error ==
        "app:2: no block lives at this address: dropped");
  CHECK(fixture::read_all("malloc(8\n", options).error == "app:1: expected ')': malloc(8");
}

TEST_CASE("text: NULs behind the last line are a recorder that was killed") {
  const std::string killed = "#cmt text=1\nmalloc(8) = 10<1>\n" + std::string(5000, '\0');
  const auto read = fixture::read_all(killed);
  CHECK(read.lines == Texts{"malloc(8) = 10<1>"});
  CHECK(read.defects == 0);
  CHECK(read.truncated);
}

TEST_CASE("text: of many bad lines before the first event few are reported, and all are counted") {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "free(" + std::to_string(i + 1) + ")\nbad\n";
  std::uint64_t reported = 0, defects = 0;
  ReadOptions options;
  options.on_defect = [&](const Defect& defect) {
    ++reported;
    defects += defect.count;
  };
  Reader reader(fixture::file_of(text + "malloc(8) = 10\n"), "app", options);
  CHECK(reported < 40);
  CHECK(defects == 40000);
  CHECK(reader.defects() == 40000);
}
