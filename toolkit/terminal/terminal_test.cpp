// Checks widths, sparklines and views that are drawn over in place.

#include "toolkit/terminal/terminal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "tests/terminal.h"
#include "toolkit/terminal/progress.h"

using namespace cmt::terminal;

TEST_CASE("terminal: a text is cut between code points") {
  CHECK(cut_to_width("abc", 2) == "ab");
  CHECK(cut_to_width("abc", 3) == "abc");
  CHECK(cut_to_width("\xc3\xa4\xe2\x82\xac"
                     "b",
                     2) == "\xc3\xa4\xe2\x82\xac");
  CHECK(cut_to_width("abc", 0).empty());
}

TEST_CASE("terminal: a descriptor that is none has the size of an old terminal") {
  CHECK(terminal_size(-1).rows == 24);
  CHECK(terminal_size(-1).columns == 80);
}

TEST_CASE("sparkline: heights go from 0 to the largest number") {
  CHECK(sparkline(std::vector<std::uint64_t>{0, 4, 8}, 10) == "▁▅█");
}

TEST_CASE("sparkline: the last numbers are shown, and the largest of them is the top") {
  CHECK(sparkline(std::vector<std::uint64_t>{1000, 4, 8}, 2) == "▅█");
}

TEST_CASE("sparkline: nothing, and nothing but zeros") {
  CHECK(sparkline({}, 10).empty());
  CHECK(sparkline(std::vector<std::uint64_t>{0, 0}, 10) == "▁▁");
  CHECK(sparkline(std::vector<std::uint64_t>{UINT64_MAX}, 10) == "█");
}

TEST_CASE("live view: nothing is written where there is no terminal") {
  int fds[2];
  REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
  LiveView view(fds[1]);
  CHECK_FALSE(view.active());
  CHECK_FALSE(view.due());
  view.show({"12 MiB"});
  view.clear();
  char byte;
  CHECK(read(fds[0], &byte, 1) == -1);
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("live view: lines are drawn over in place, cut to the terminal, and taken away") {
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  LiveView view(terminal.fd());
  view.show({"one", "two of more than twenty columns", "\x1b[2J"});
  check_written(terminal, "\rone\x1b[K\r\r\ntwo of more than tw\x1b[K\r\r\n [2J\x1b[K\x1b[J\r");
  view.resized();
  view.show({"1", "2", "3", "4", "5", "6"});
  check_written(terminal, "\r\x1b[2A1\x1b[K\r\r\n2\x1b[K\r\r\n3\x1b[K\r\r\n4\x1b[K\x1b[J\r");
  view.clear();
  view.clear();
  check_written(terminal, "\r\x1b[3A\x1b[J");
}

TEST_CASE("live view: a drawing that comes soon after another is left out") {
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  {
    LiveView view(terminal.fd());
    view.show({"12 %"});
    view.show({"13 %"});
  }
  check_written(terminal, "\r12 %\x1b[K\x1b[J\r\x1b[J");
}

TEST_CASE("live view: if a smaller terminal has wrapped the lines, it clears the screen") {
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  LiveView view(terminal.fd());
  view.show({"twelve bytes", "x"});
  check_written(terminal, "\rtwelve bytes\x1b[K\r\r\nx\x1b[K\x1b[J\r");
  terminal.resize(5, 10);
  view.resized();
  view.show({"twelve bytes"});
  check_written(terminal, "\x1b[H\x1b[2J\rtwelve by\x1b[K\x1b[J");
  view.clear();
}

TEST_CASE("progress: the time left is in the two largest units") {
  CHECK(time_left_text(3.2) == "4 s left");
  CHECK(time_left_text(125) == "2 min 5 s left");
  CHECK(time_left_text(7260) == "2 h 1 min left");
}

TEST_CASE("progress: the rest takes as long as it is larger than what is done") {
  CHECK(ShareDone::text(0.25, 10) == "25 %, 30 s left");
  CHECK(ShareDone::text(0.25, 0.9) == "25 %");
  CHECK(ShareDone::text(0, 10) == "0 %");
  CHECK(ShareDone::text(1.2, 10) == "100 %, 0 s left");
}

TEST_CASE("progress: nothing is drawn in the first second") {
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  ProgressLine line(terminal.fd());
  line.show("a.cmt", 1 << 20, 2 << 20);
  line.show("a.cmt", 1, 0);
  line.show_work("naming functions", 0.5);
  line.clear();
  CHECK(write(terminal.fd(), "end", 3) == 3);
  check_written(terminal, "end");
}
