// The control sequences are those of the VT102, which terminals have in common. Each drawing is one write(), because
// the command may write between any two.
//
// To reserve the last row, the cursor must leave it and its text must not be lost. One index (down; in the last row it
// scrolls) and one cursor-up do that and keep the column. They are not part of every drawing, because they make the
// terminal forget that a line is full and that the next character belongs in the next one; saving and restoring the
// cursor does not.
//
// A command may reset the terminal, and with it the region, without our knowing. So every drawing sets the region,
// which is enough while the cursor is above the last row; for the other case the row is reserved again from time to
// time.

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "toolkit/output/utf8.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::output {
namespace {

constexpr std::string_view save = "\0337", restore = "\0338", next_line = "\033D";
constexpr std::string_view up = "\033[A", down = "\033[B", no_style = "\033[m";
constexpr std::string_view clear_rest_of_line = "\033[K", clear_below = "\033[J", whole_region = "\033[r";

/// Wrapping is off while we draw: a terminal that has just become narrower would wrap the line, and scroll.
constexpr std::string_view wrap_off = "\033[?7l", wrap_on = "\033[?7h";

/// Before the first drawing, so that a command that takes the whole screen at once meets no line of ours.
constexpr auto first_delay = std::chrono::milliseconds(250);

/// Rarely, because it loses a character where the command waits at the end of a full line.
constexpr auto reserve_interval = std::chrono::seconds(5);

bool understood(const char* term) { return term && *term && std::string_view(term) != "dumb"; }

std::string to_row(std::size_t row) { return "\033[" + std::to_string(row) + ";1H"; }
std::string region_above(std::size_t row) { return "\033[1;" + std::to_string(row - 1) + "r"; }

/// Makes the whole terminal the region again, and empties the last row where it is ours.
std::string give_back(std::size_t rows, bool ours) {
  std::string text = std::string(save).append(whole_region);
  if (ours) text.append(to_row(rows)).append(no_style).append(clear_rest_of_line);
  return text.append(restore);
}

/// Erases the old line where the terminal's size has changed: terminals then keep the line, wrap it or move it, but
/// never above the cursor. The whole terminal must be the region.
std::string erase_below_cursor() { return std::string(down).append("\r").append(no_style).append(clear_below); }

/// Allows writing while another job is in the foreground, for which the terminal may be set to stop us.
class WritesFromBackground {
 public:
  WritesFromBackground() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~WritesFromBackground() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WritesFromBackground(const WritesFromBackground&) = delete;
  WritesFromBackground& operator=(const WritesFromBackground&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

BottomLine::BottomLine(int fd)
    : TerminalView(fd, Clock::now() + first_delay), understood_(understood(getenv("TERM"))) {}

bool BottomLine::terminal_is_ours() const {
  termios settings{};
  if (tcgetattr(fd(), &settings) != 0 || (settings.c_lflag & ICANON) == 0) return false;
  const pid_t foreground = tcgetpgrp(fd());
  return foreground < 0 || foreground == getpgrp();  // below 0: it is not the terminal that we were started from
}

void BottomLine::draw(const std::vector<std::string>& lines) {
  if (!understood_ || lines.empty()) return;
  const TerminalSize now = size();
  if (now.rows < 3 || !terminal_is_ours()) return clear();
  const bool changed = drawn_on_ && *drawn_on_ != now;
  std::string text;
  if (!drawn_on_ || changed || Clock::now() >= reserve_again_) {
    text.append(give_back(now.rows, drawn_on_ == now)).append(next_line).append(up);
    reserve_again_ = Clock::now() + reserve_interval;
  }
  text.append(save).append(changed ? erase_below_cursor() : "");
  text.append(region_above(now.rows)).append(to_row(now.rows)).append(no_style).append(wrap_off);
  text.append(cut_to_width(to_line(lines[0]), now.columns - 1));
  text.append(clear_rest_of_line).append(wrap_on).append(restore);
  drawn_on_ = now;
  write(text);
}

void BottomLine::clear() {
  if (!drawn_on_) return;
  const TerminalSize now = size();
  std::string text = give_back(now.rows, drawn_on_ == now);
  if (drawn_on_ != now) text.append(next_line).append(up).append(save).append(erase_below_cursor()).append(restore);
  drawn_on_.reset();
  const WritesFromBackground allowed;
  write(text);
}

}  // namespace cmt::output
