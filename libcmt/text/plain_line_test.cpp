// The fast parser: it reads common lines as the Parser does, and leaves all others to the Parser.

#include "libcmt/text/parser.h"

#include <doctest/doctest.h>

#include <string>

#include "cmt/text.h"

using namespace cmt;

namespace {

const std::string room(64, '\n');

/// The canonical line of the event that parse_plain() makes of a line; "" if it leaves the line to the Parser.
std::string plain(const std::string& line) {
  const std::string window = line + "\n" + room;
  Event event;
  const std::size_t length = text::parse_plain(window, event);
  if (length == 0) return "";
  CHECK(length == line.size());
  return to_line(event);
}

}  // namespace

TEST_CASE("plain line: the common calls are read as they are written") {
  for (const char* line :
       {"malloc(8) = 81d220b48<6655>", "realloc(81d220b48<6655>, 16) = 81d3b83a0<6656>", "free(81d3b83a0<6656>)",
        "free(0)", "malloc(0) = 0", "malloc(8) = <7>", "free(<7>)", "calloc(2, 8) = 7f0000000010<8> thread=3",
        "operator new(32) = 10<9> thread=1 time=5 usable=40", "operator delete(10<9>)", "operator delete(10<9>, 32)",
        "malloc(8) = 10 time=4611686018427387903", "free(ffffffffffffffff) usable=0"}) {
    CAPTURE(line);
    CHECK(plain(line) == line);
  }
}

TEST_CASE("plain line: what is not canonical, or wrong, is left to the parser") {
  for (const char* line : {"",
                           "malloc(8)",
                           "malloc(8) = 10<1> ",
                           "free(10<1>) time=5 ",
                           "malloc(8) =10<1>",
                           "malloc( 8) = 10<1>",
                           "malloc(8) = 0x10<1>",
                           "malloc(8) = (nil)",
                           "malloc(8) = 10<1>  # was 5",

                           "malloc(8) = 10<1> thread=4294967296",
                           "free(10<0>)",
                           "malloc(8) = 10<1> stack=4294967296",
                           "malloc(8) = 10<1>\r",
                           "free(10<1>",
                           "free(11111111111111111<1>)",
                           "malloc(18446744073709551615) = 10<1>",
                           "malloc(8) = 10<1> time=4611686018427387904",
                           "mark(\"x\")",
                           "malloc(8) = 10<1> time=5 thread=1",
                           "operator new(8, nothrow) = 10<1>",
                           "posix_memalign(8, 8) = 10<1>"}) {
    CAPTURE(line);
    CHECK(plain(line) == "");
  }
}

TEST_CASE("plain line: cut anywhere a line is left to the parser, and nothing behind the window is read") {
  const std::string line = "realloc(81d220b48<6655>, 16) = 81d3b83a0<6656> thread=1 time=5 usable=40\n";
  for (std::size_t length = 0; length < line.size(); ++length) {
    const std::string window = line.substr(0, length) + "\n";
    const std::string copy(window);  // of exactly this size, for the address sanitizer
    Event event;
    const std::size_t taken = text::parse_plain(copy, event);
    text::Parser parser;
    const bool is_event = parser.parse(line.substr(0, length)).sort == text::Line::Sort::event;
    CHECK((taken == 0 || (is_event && taken == length)));
  }
}
