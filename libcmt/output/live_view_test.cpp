#include "output/live_view.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

using cmt::output::LiveView;

namespace {

/// A terminal without a user.
class Terminal {
 public:
  Terminal() : terminal_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0) return;
    end_ = open(ptsname(terminal_), O_RDWR | O_NOCTTY);
    resize(5, 20);
  }
  ~Terminal() {
    if (end_ >= 0) close(end_);
    close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int fd() const { return end_; }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(end_, TIOCSWINSZ, &size);
  }

  /// What was written, up to so many bytes; the terminal has put a carriage return before each line feed.
  std::string read(std::size_t bytes) const {
    std::string text;
    std::array<char, 256> part;
    while (text.size() < bytes) {
      const ssize_t got = ::read(terminal_, part.data(), part.size());
      if (got <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int terminal_;
  int end_ = -1;
};

void check_written(const Terminal& terminal, const std::string& expected) {
  CHECK(terminal.read(expected.size()) == expected);
}

}  // namespace

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
