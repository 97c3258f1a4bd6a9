// Every format is recognised by its samples, by no other format's, and is named by --help.

#include "toolkit/logs/log_format.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;

namespace {

struct Sample {
  std::string name;    // "kdump_columns"
  std::string format;  // "kdump"
  std::string bytes;
};

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const auto& entry : std::filesystem::directory_iterator(CMT_SAMPLES)) {
    if (entry.path().extension() != ".log") continue;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path()).rdbuf();
    const std::string name = entry.path().stem();
    all.push_back({name, name.substr(0, name.find('_')), bytes.str()});
  }
  return all;
}

bool has_telling_line(const LogFormat& format, const std::string& bytes) {
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line);) {
    if (format.identifies(line)) return true;
  }
  return false;
}

std::string detected(std::string_view start) {
  const LogFormat* const format = recognise_log_format(start);
  return format == nullptr ? "" : std::string(format->name);
}

}  // namespace

TEST_CASE("formats: every sample is known as what it is, and as no other") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    CHECK(detected(sample.bytes) == sample.format);
    for (const LogFormat& format : log_formats()) {
      CAPTURE(format.name);
      // The interpreted form of heaptrack has lines like `a 18 9`, but never before its first.
      if (sample.format == "heaptrack" && format.name == "rep") continue;
      CHECK(has_telling_line(format, sample.bytes) == (format.name == sample.format));
    }
  }
}

TEST_CASE("formats: every format has a sample") {
  const std::vector<Sample> all = samples();
  for (const LogFormat& format : log_formats()) {
    CAPTURE(format.name);
    CHECK(std::any_of(all.begin(), all.end(), [&](const Sample& sample) { return sample.format == format.name; }));
  }
}

TEST_CASE("formats: text is no log of another tool") {
  for (const std::string_view text :
       {"", "\n\n", "malloc(8) = 81d220b48<6655>\n[pid 12] malloc(8) = 0x10\n", "malloc(8) = 0x81d220b48\nfree(10)\n",
        "#cmt text=1\n= Start\n", "calloc(2, 8) = (nil)\n", "free(0)  # 8 bytes, allocated 1 lines ago\n",
        "operator new(8, align=64) = <1>\n", "mark(\"= Start\")\n", "realloc(10, 16) = 20\r\n"}) {
    CAPTURE(text);
    CHECK(detected(text).empty());
  }
}

TEST_CASE("formats: a log is known also behind lines that tell nothing") {
  CHECK(detected("hello, world\n\n--12-- malloc(10) = 0x4A43040\n") == "valgrind");
  CHECK(detected("malloc(10)      = 0x55d44e3922a0\nfree(0x55d44e3922a0)   = <void>\n") == "ltrace");
  CHECK(detected("# a comment\r\n202: free 0xb4827400\r\n") == "android");
  CHECK(detected(" 61039 make     USER  malloc_init()") == "kdump");
}

TEST_CASE("formats: names of functions are demangled") {
  const auto first_name = [](std::string_view format, std::string_view log) {
    cmt::StackTable stacks;
    ParsedLog parsed;
    parsed.use_stacks(stacks);
    REQUIRE(!cmt::fixture::lines_of(format, log, parsed).empty());
    return std::string(stacks.names(1)[0].function);
  };
  CHECK(first_name("mtrace", "@ ./a:(_ZN4shop5Order3addEi+1c)[0x1172] + 0x10 0x64\n") == "shop::Order::add(int)");
  CHECK(first_name("dtrace", "call-trace\t1\tchrome`_ZN4shop5Order3addEi+0x4\tmalloc\t96\t81d21e100\n") ==
        "shop::Order::add(int)");
  CHECK(first_name("heaptrack", "v 10400 3\ns 9 _RNvC1a1f\ni 55 0 1\nt 1 0\na 8 1\n+ 0\n") == "a::f");
}

TEST_CASE("formats: a name finds its format") {
  for (const LogFormat& format : log_formats()) CHECK(find_log_format(format.name)->name == format.name);
  CHECK(find_log_format("text") == nullptr);
  CHECK(find_log_format("") == nullptr);
}
