// Checks what a line in the last row writes to a pseudo-terminal: drawing, resizing, and giving the terminal back.

#include "toolkit/terminal/terminal.h"

#include <doctest/doctest.h>
#include <termios.h>

#include <cstdlib>
#include <string>

#include "tests/terminal.h"

using cmt::terminal::BottomLine;
using cmt::terminal::check_written;
using cmt::terminal::Terminal;

namespace {

void set_keys_wanted(const Terminal& terminal, bool wanted) {
  termios settings{};
  tcgetattr(terminal.fd(), &settings);
  settings.c_lflag = wanted ? settings.c_lflag & ~static_cast<tcflag_t>(ICANON) : settings.c_lflag | ICANON;
  tcsetattr(terminal.fd(), TCSANOW, &settings);
}

/// How the cursor is kept out of the last row, and how the line is drawn in it.
constexpr const char* reserved = "\0337\033[r\0338\033D\033[A\0337";
std::string drawn(int rows, const std::string& line) {
  return "\033[1;" + std::to_string(rows - 1) + "r\033[" + std::to_string(rows) + ";1H\033[m\033[?7l" + line +
         "\033[K\033[?7h\0338";
}
std::string reserving(const std::string& line) { return reserved + drawn(5, line); }

constexpr const char* taken_away = "\0337\033[r\033[5;1H\033[m\033[K\0338";

}  // namespace

TEST_CASE("bottom line: it is drawn in the last row, cut to the terminal, and taken away") {
  setenv("TERM", "xterm", 1);
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  BottomLine line(terminal.fd());
  CHECK_FALSE(line.due());
  line.resized();
  line.show({"more than twenty columns", "more than one line"});
  check_written(terminal, reserving("more than twenty co"));
  line.clear();
  line.clear();
  check_written(terminal, taken_away);
}

TEST_CASE("bottom line: a program that takes keys has the whole terminal") {
  setenv("TERM", "xterm", 1);
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  BottomLine line(terminal.fd());
  line.resized();
  line.show({"one"});
  set_keys_wanted(terminal, true);
  for (int i = 0; i < 2; ++i) {
    line.resized();
    line.show({"two"});
  }
  set_keys_wanted(terminal, false);
  line.resized();
  line.show({"three"});
  check_written(terminal, reserving("one") + taken_away + reserving("three"));
}

TEST_CASE("bottom line: its rest in a terminal of another size goes, too") {
  setenv("TERM", "xterm", 1);
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  BottomLine line(terminal.fd());
  line.resized();
  line.show({"one"});
  check_written(terminal, reserving("one"));
  terminal.resize(4, 20);
  line.resized();
  line.show({"two"});
  const std::string erased = std::string(reserved) + "\033[B\r\033[m\033[J";
  check_written(terminal, erased + drawn(4, "two"));
  terminal.resize(2, 20);
  line.resized();
  line.show({"three"});
  check_written(terminal, erased + "\0338");
}

TEST_CASE("bottom line: nothing is drawn where the terminal would not understand") {
  const Terminal terminal;
  if (terminal.fd() < 0) return;
  for (const char* term : {"dumb", "", "xterm"}) {
    setenv("TERM", term, 1);
    BottomLine line(terminal.fd());
    line.resized();
    line.show({term});
  }
  check_written(terminal, reserving("xterm") + taken_away);
}
