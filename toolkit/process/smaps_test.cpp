// Checks mappings from texts that are whole, cut into pieces, damaged, or repeat a mapping that grew.

#include "toolkit/process/smaps.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "cmt/error.h"

using namespace cmt::process;

namespace {

constexpr const char* two_mappings =
    "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n"
    "Size:                132 kB\n"
    "Rss:                  12 kB\n"
    "Pss:                   6 kB\n"
    "Pss_Dirty:             5 kB\n"
    "Shared_Dirty:          2 kB\n"
    "Private_Clean:         4 kB\n"
    "Private_Dirty:         8 kB\n"
    "Referenced:            8 kB\n"
    "Anonymous:            12 kB\n"
    "LazyFree:              4 kB\n"
    "SwapPss:               3 kB\n"
    "Swap:                 16 kB\n"
    "VmFlags: rd wr mr mw me ac \n"
    "7f1000000000-7f1000001000 r--s 00001000 00:01 77                         /memfd:a name (deleted)\n"
    "Rss:                   4 kB\n";

}  // namespace

TEST_CASE("smaps: a mapping's range, name and figures are read") {
  const auto mappings = parse_smaps(two_mappings);
  REQUIRE(mappings.size() == 2);
  CHECK(mappings[0].begin == 0x55d0c8a00000);
  CHECK(mappings[0].end == 0x55d0c8a21000);
  CHECK(mappings[0].name == "[heap]");
  CHECK(mappings[0].resident_bytes == 12 * 1024);
  CHECK(mappings[0].proportional_bytes == 6 * 1024);
  CHECK(mappings[0].dirty_bytes == 10 * 1024);
  CHECK(mappings[0].anonymous_bytes == 12 * 1024);
  CHECK(mappings[0].referenced_bytes == 8 * 1024);
  CHECK(mappings[0].lazy_free_bytes == 4 * 1024);
}

TEST_CASE("smaps: clean and dirty private pages are added") {
  CHECK(parse_smaps(two_mappings)[0].private_bytes == 12 * 1024);
}

TEST_CASE("smaps: memory that the kernel lists twice, because mappings grew meanwhile, is taken once") {
  const auto taken = [](const char* text) {
    std::string all;
    for (const Mapping& mapping : parse_smaps(text)) {
      all += std::to_string(mapping.begin / 4096) + "-" + std::to_string(mapping.end / 4096) + " has " +
             std::to_string(mapping.resident_bytes / 4096) + "; ";
    }
    return all;
  };
  CHECK(taken("1000-3000 rw-p 00000000 00:00 0\nRss: 8 kB\n1000-5000 rw-p 00000000 00:00 0\nRss: 12 kB\n"
              "5000-6000 ---p 00000000 00:00 0\nRss: 0 kB\n") == "1-5 has 3; 5-6 has 0; ");
  CHECK(taken("1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\n2000-3000 r--p 00000000 00:00 0\nRss: 4 kB\n"
              "1000-5000 rw-p 00000000 00:00 0\nRss: 16 kB\n") == "1-2 has 1; 2-5 has 3; ");
  CHECK(taken("1000-4000 rw-p 00000000 00:00 0\nRss: 12 kB\n3000-5000 rw-p 00000000 00:00 0\nRss: 8 kB\n") ==
        "1-3 has 2; 3-5 has 2; ");
}

TEST_CASE("smaps: reserved huge pages are not resident") {
  const Mapping mapping = parse_smaps(
      "7f0000000000-7f0000800000 rw-p 00000000 00:11 7 /anon_hugepage (deleted)\n"
      "Rss:                   0 kB\nShared_Hugetlb:     2048 kB\nPrivate_Hugetlb:    4096 kB\n")[0];
  CHECK(mapping.resident_bytes == 0);
  CHECK(mapping.private_hugetlb_bytes == 4 << 20);
  CHECK(mapping.hugetlb_bytes() == 6 << 20);
}

TEST_CASE("smaps: Swap is not mistaken for SwapPss") { CHECK(parse_smaps(two_mappings)[0].swapped_bytes == 16 * 1024); }

TEST_CASE("smaps: a name keeps its blanks, and a shared mapping is recognised") {
  const Mapping mapping = parse_smaps(two_mappings)[1];
  CHECK(mapping.name == "/memfd:a name (deleted)");
  CHECK(mapping.shared());
  CHECK(mapping.permissions == "r--s");
}

TEST_CASE("smaps: an anonymous mapping has an empty name") {
  CHECK(parse_smaps("7f1000000000-7f1000001000 rw-p 00000000 00:00 0 \n")[0].name.empty());
}

TEST_CASE("smaps: an empty text has no mappings") { CHECK(parse_smaps("").empty()); }

TEST_CASE("smaps: a line that is no mapping is reported with its number") {
  CHECK_THROWS_WITH_AS(parse_smaps("Rss: 4 kB\n"), "smaps:1: expected a mapping", cmt::FormatError);
  CHECK_THROWS_WITH_AS(parse_smaps("1000-2000 rw-p 0 0 0\nsurprise\n"), "smaps:2: expected a mapping",
                       cmt::FormatError);
}

TEST_CASE("smaps: a range that ends before it begins, and a figure without a number, are reported with name and line") {
  CHECK_THROWS_WITH_AS(parse_smaps("2000-1000 rw-p 0 0 0\n", "a b"), "a b:1: expected a mapping", cmt::FormatError);
  for (const char* figure : {"Rss", "Rss:", "Rss: kB", "Rss: 99999999999999999999 kB"})
    CHECK_THROWS_WITH_AS(parse_smaps(std::string("1000-2000 rw-p 0 0 0\n") + figure), "smaps:2: expected a number",
                         cmt::FormatError);
}

TEST_CASE("smaps: a text that comes in pieces, cut anywhere, is the same") {
  const std::string_view text = two_mappings;
  const auto whole = parse_smaps(text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::vector<Mapping> mappings;
    SmapsParser parser([&](const Mapping& mapping) { mappings.push_back(mapping); });
    parser.feed(text.substr(0, cut));
    parser.feed(text.substr(cut));
    parser.end();
    REQUIRE(mappings.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CHECK(mappings[i].end == whole[i].end);
      CHECK(mappings[i].name == whole[i].name);
      CHECK(mappings[i].resident_bytes == whole[i].resident_bytes);
      CHECK(mappings[i].swapped_bytes == whole[i].swapped_bytes);
    }
  }
}

TEST_CASE("smaps: the recorder is known by its name") {
  for (const char* name :
       {"/usr/lib/cmt/libcmttrace.so", "/usr/lib/libcmttrace.so (deleted)", "/memfd:cmttrace (deleted)"})
    CHECK(is_tracer(name));
  for (const char* name : {"/usr/lib/libcmttrace-pools.so", "/memfd:other (deleted)", "[heap]", ""})
    CHECK(!is_tracer(name));
}

TEST_CASE("smaps: the own process has a stack") {
  const auto mappings = read_smaps(getpid());
  const auto is_stack = [](const Mapping& mapping) { return mapping.name == "[stack]"; };
  CHECK(std::count_if(mappings.begin(), mappings.end(), is_stack) == 1);
}
