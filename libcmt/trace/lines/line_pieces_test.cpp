// A reader of a text returns the same for any number of threads: events, lines, places, defects, and the error that
// ends the text.

#include "libcmt/trace/lines/line_pieces.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;

namespace {

/// A text of many pieces. Most of its lines are common ones; `odd` in a thousand are something else.
std::string made_up_text(unsigned seed, unsigned odd) {
  static const std::vector<std::string> odd_lines{"# a comment",
                                                  "",
                                                  "nonsense(8)",
                                                  "free(10<1",
                                                  "mark(\"x\")",
                                                  "  malloc( 8 ) = 0x5 # spaced",
                                                  "memalign(64, 8) = 77000",
                                                  "#cmt pid=1",
                                                  "free(123456)",
                                                  "malloc(8) = 1000<1>",
                                                  "#module 1 begin=1000 end=2000 bias=0 path=/bin/a",
                                                  "#frame 1 module=1 address=1100",
                                                  "#node 1 parent=0 frame=1",
                                                  "malloc(8) = 88000 stack=1",
                                                  "malloc(8) = 99000 stack=7"};
  std::mt19937 random(seed);
  std::vector<std::uint64_t> live;
  std::string text = seed % 2 == 0 ? "#cmt text=1\n" : "";
  for (int i = 0; i < 12000; ++i) {
    Event event{.thread = static_cast<std::uint32_t>(random() % 2), .time_ns = static_cast<std::uint64_t>(i)};
    if (random() % 1000 < odd) {
      text += odd_lines[random() % odd_lines.size()] + "\n";
    } else if (live.empty() || random() % 2 == 0) {
      event.size = random() % 64;
      event.address = 0x7f0000000000 + 64 * (random() % 100'000 < 50 ? live.size() : static_cast<std::uint64_t>(i));
      live.push_back(event.address);
      text += to_line(event) + "\n";
    } else {
      event.kind = Kind::free;
      std::swap(live[random() % live.size()], live.back());
      event.old_address = live.back();
      live.pop_back();
      text += to_line(event) + "\n";
    }
  }
  return text;
}

void check_threads(const std::string& text, ReadOptions options) {
  const auto one = fixture::read_all(text, options);
  for (const unsigned threads : {2u, 5u}) {
    options.threads = threads;
    const auto many = fixture::read_all(text, options);
    CHECK(many.lines == one.lines);
    CHECK(many.messages == one.messages);
    CHECK(many.error == one.error);
    CHECK(many.defects == one.defects);
    CHECK(many.truncated == one.truncated);
  }
}

}  // namespace

TEST_CASE("line pieces: a text reads the same with any number of threads") {
  for (const unsigned odd : {0u, 1u, 50u}) {
    for (const bool stacks : {false, true}) {
      CAPTURE(odd);
      ReadOptions options;
      options.stacks = stacks;
      check_threads(made_up_text(2 + odd, odd), options);
      check_threads(made_up_text(3 + odd, odd), options);
    }
  }
}

TEST_CASE("line pieces: a strict reader stops at the same line, behind the same events") {
  ReadOptions options;
  options.strict = true;
  options.stacks = true;
  check_threads(made_up_text(6, 1), options);
}

TEST_CASE("line pieces: where the text ends, and how, is the same") {
  std::string text = made_up_text(8, 0);
  check_threads(text.substr(0, text.size() - 5), {});
  check_threads(text + std::string(70'000, '\0'), {});
  check_threads(text + std::string(1'100'000, 'x') + "\nfree(0)\n", {});
  check_threads(text + std::string(900'000, '#') + "\nfree(0)\n", {});
  check_threads("", {});
}

TEST_CASE("line pieces: a reader may be left before its end") {
  const int fd = fixture::file_of(made_up_text(9, 1));
  Reader reader(fd, "app", {.threads = 5});
  CHECK(!reader.read().empty());
  CHECK(reader.bytes_read() > 0);
}
