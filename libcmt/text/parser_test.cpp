// The text parser: every call, tolerated spellings, metadata, and messages for wrong lines.

#include "libcmt/text/parser.h"

#include <doctest/doctest.h>

#include "cmt/text.h"
#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using text::Line;
using text::Parser;

namespace {

std::string canonical(std::string_view line) {
  Parser parser;
  const Line& parsed = parser.parse(line);
  return parsed.sort == Line::Sort::event ? to_line(parsed.event) : "expected " + std::string(parsed.expected);
}

}  // namespace

TEST_CASE("parser: every call is written as it was read") {
  for (const char* line : {
           "malloc(8) = 81d220b48<6655>",
           "malloc(8) = <7>",
           "malloc(8) = 0",
           "free(81d220b48<6655>)",
           "free(0)",
           "calloc(3, 8) = 10<1>",
           "realloc(10<1>, 16) = 20<2>",
           "reallocarray(10<1>, 3, 16) = 20<2>",
           "aligned_alloc(64, 128) = 10<1>",
           "memalign(64, 128) = 10<1>",
           "posix_memalign(64, 128) = 10<1>",
           "valloc(1) = 10<1>",
           "pvalloc(1) = 10<1>",
           "free_sized(10<1>, 8)",
           "free_aligned_sized(10<1>, 16, 8)",
           "operator new(1) = 10<1>",
           "operator new(1, align=64) = 10<1>",
           "operator new(1, nothrow) = 10<1>",
           "operator new(1, align=64, nothrow) = 10<1>",
           "operator new[](1) = 10<1>",
           "operator new[](1, align=64, nothrow) = 10<1>",
           "operator delete(10<1>)",
           "operator delete(10<1>, align=64)",
           "operator delete(10<1>, 8)",
           "operator delete(10<1>, 8, align=64)",
           "operator delete[](10<1>)",
           "operator delete[](10<1>, 8, align=64)",
           "thread_start() thread=1",
           "thread_exit() thread=1",
           "thread_name(\"worker \\\"3\\\"\") thread=1",
           "mark(\"\\\\ \\n \\t \\r \\x00 \\x7f\")",
           "sample(18446744073709551615)",
           "malloc(8) = 10<1> thread=4294967295 time=4611686018427387903 usable=24",
       }) {
    CHECK(canonical(line) == line);
  }
}

TEST_CASE("parser: what is tolerated becomes the canonical form") {
  CHECK(canonical("  malloc ( 8 )  =  10 < 1 >  thread = 1\r") == "malloc(8) = 10<1> thread=1");
  CHECK(canonical("operator new( 8 , align = 64 , nothrow ) = 10<1>") == "operator new(8, align=64, nothrow) = 10<1>");
  CHECK(canonical("malloc(8) = 0x00AbC<007>") == "malloc(8) = abc<7>");
  for (const char* null : {"(nil)", "(null)", "NULL", "0x0", "0"}) {
    CHECK(canonical(std::string("free(") + null + ")") == "free(0)");
  }
  CHECK(canonical("malloc(8) = 10<1> # age 3") == "malloc(8) = 10<1>");
  CHECK(canonical("malloc(8) = 10<1> time=5 colour=\"deep blue\" stack=7 thread=0") ==
        "malloc(8) = 10<1> time=5 stack=7");
}

TEST_CASE("parser: blank lines and comments are nothing") {
  Parser parser;
  for (const char* line : {"", "   ", "\r", "# words", "#cmt", "#comment"})
    CHECK(parser.parse(line).sort == Line::Sort::blank);
}

TEST_CASE("parser: metadata has a key, and a value bare or quoted") {
  Parser parser;
  CHECK(parser.parse("#cmt pid=12").sort == Line::Sort::metadata);
  CHECK(parser.parse("#cmt pid=12").key == "pid");
  CHECK(parser.parse("#cmt pid=12").value == "12");
  CHECK(parser.parse("#cmt command=\"a \\\"b\\\" # c\"").value == "a \"b\" # c");
  CHECK(parser.parse("#cmt pid=").value == "");
}

TEST_CASE("parser: a wrong line says what was expected") {
  CHECK(canonical("hello") == "expected a call, as in malloc(8)");
  CHECK(canonical("hello(3)") == "expected a known call");
  CHECK(canonical("malloc(8)") == "expected '=' and the result");
  CHECK(canonical("malloc(8) = x") == "expected the result's address, or <tag>");
  CHECK(canonical("malloc(8) = 10<0>") == "expected the result's address, or <tag>");
  CHECK(canonical("malloc(8) = 10<1") == "expected the result's address, or <tag>");
  CHECK(canonical("malloc(8) = 10000000000000000<1>") == "expected the result's address, or <tag>");
  CHECK(canonical("free()") == "expected a block: its address, or <tag>");
  CHECK(canonical("memalign(x, 8) = 1<1>") == "expected an alignment in decimal");
  CHECK(canonical("operator new(8, align=x) = 1<1>") == "expected an alignment in decimal");
  CHECK(canonical("calloc(x, 8) = 1<1>") == "expected a count in decimal");
  CHECK(canonical("malloc(-1) = 1<1>") == "expected a size in decimal");
  CHECK(canonical("malloc(18446744073709551616) = 1<1>") == "expected a size in decimal");
  CHECK(canonical("mark(words)") == "expected a quoted string");
  CHECK(canonical("mark(\"words)") == "expected a quoted string");
  CHECK(canonical("mark(\"\\q\")") == "expected a quoted string");
  CHECK(canonical("mark(\"" + std::string(4097, 'x') + "\")") == "expected a string of at most 4096 bytes");
  CHECK(canonical("operator new(8, sometimes) = 1<1>") == "expected align=, a size or nothrow");
  CHECK(canonical("malloc(8 = 1<1>") == "expected ')'");
  CHECK(canonical("free(1<1>) and more") == "expected an attribute, as in thread=1");
  CHECK(canonical("free(1<1>) thread=4294967296") == "expected a thread's number");
  CHECK(canonical("free(1<1>) time=4611686018427387904") == "expected a time in nanoseconds");
  CHECK(canonical("malloc(8) = 1<1> usable=x") == "expected a usable size in bytes");
  CHECK(canonical("free(1<1>) colour=\"blue") == "expected a quoted string");
  CHECK(canonical("#cmt words") == "expected key=value after #cmt");
  CHECK(canonical("#cmt pid=1 2") == "expected key=value after #cmt");
  CHECK(canonical("#cmt a=\"" + std::string(65537, 'x') + "\"") == "expected a value of at most 65536 bytes");
  CHECK(canonical("#cmt " + std::string(257, 'k') + "=1") == "expected a key of at most 256 bytes");
}

TEST_CASE("parser: no cut and no flipped bit of a line does harm") {
  for (const std::string& line : fixture::lines(fixture::random_events(9, fixture::Addresses::reused, 300))) {
    for (std::size_t length = 0; length < line.size(); ++length) canonical(std::string(line, 0, length));
    std::string flipped = line;
    for (std::size_t bit = 0; bit < line.size() * 8; bit += 3) {
      flipped[bit / 8] = static_cast<char>(line[bit / 8] ^ 1 << bit % 8);
      const std::string result = canonical(flipped);
      if (!result.starts_with("expected")) CHECK(canonical(result) == result);
      flipped[bit / 8] = line[bit / 8];
    }
  }
}
