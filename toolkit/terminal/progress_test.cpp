#include "toolkit/terminal/progress.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cstdlib>
#include <string>

using cmt::output::ProgressLine;

TEST_CASE("progress: nothing is written where there is no terminal") {
  int fds[2];
  REQUIRE(pipe2(fds, O_NONBLOCK) == 0);
  {
    ProgressLine line(fds[1]);
    CHECK_FALSE(line.active());
    line.show("12 %");
  }
  char byte;
  CHECK(read(fds[0], &byte, 1) == -1);
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("progress: on a terminal the line is shown and taken away, and soon again it is left out") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return;
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  {
    ProgressLine line(end);
    line.show("12 %");
    line.show("13 %");
  }
  const std::string expected = "\r\x1b[K12 %\r\x1b[K";
  std::string text;
  std::array<char, 64> part;
  while (text.size() < expected.size()) {
    const ssize_t got = read(terminal, part.data(), part.size());
    REQUIRE(got > 0);
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  CHECK(text == expected);
  close(end);
  close(terminal);
}
