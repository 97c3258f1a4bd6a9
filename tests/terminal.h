/// A pseudo-terminal, for tests of what tools write to a terminal.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace cmt::terminal {

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

  /// The bytes that were written, up to so many. The terminal has put a carriage return before each line feed.
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

inline void check_written(const Terminal& terminal, const std::string& expected) {
  CHECK(terminal.read(expected.size()) == expected);
}

}  // namespace cmt::terminal
