#include "toolkit/terminal/terminal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/terminal.h"

using cmt::terminal::check_written;
using cmt::terminal::LiveView;
using cmt::terminal::Terminal;

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

TEST_CASE("live view: where a smaller terminal has broken the lines anew it begins afresh") {
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
