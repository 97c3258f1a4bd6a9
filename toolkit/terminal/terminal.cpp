// Draws progress on terminals: over itself, or in the last row below the output of a command.

#include "toolkit/terminal/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cstdlib>

#include "libcmt/text/utf8.h"

namespace cmt::terminal {
namespace {

constexpr std::array<const char*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Control sequences of ECMA-48.
constexpr std::string_view erase_line = "\x1b[K", erase_below = "\x1b[J", erase_screen = "\x1b[H\x1b[2J";

bool understood(const char* term) { return term && *term && std::string_view(term) != "dumb"; }

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= 1 || size.ws_row <= 1) return {};
  return {size.ws_row, size.ws_col};
}

bool output_has_styles() {
  const char* const refused = std::getenv("NO_COLOR");
  return (refused == nullptr || *refused == 0) && understood(std::getenv("TERM")) && isatty(STDOUT_FILENO) == 1;
}

std::size_t table_width() {
  constexpr std::size_t least = 80, most = 200, elsewhere = 120;
  std::size_t columns = isatty(STDOUT_FILENO) == 1 ? terminal_size(STDOUT_FILENO).columns : elsewhere;
  if (const char* const given = std::getenv("COLUMNS"); given != nullptr) {
    std::size_t number = 0;
    const std::string_view text(given);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number != 0) columns = number;
  }
  return std::clamp(columns, least, most);
}

std::string_view cut_to_width(std::string_view text, std::size_t width) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text::begins_character(text[at]) && width-- == 0) return text.substr(0, at);
  }
  return text;
}

std::string sparkline(std::span<const std::uint64_t> numbers, std::size_t width) {
  numbers = numbers.last(std::min(width, numbers.size()));
  if (numbers.empty()) return {};
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::max_element(numbers.begin(), numbers.end()));
  std::string line;
  for (const std::uint64_t number : numbers) {
    const double share = static_cast<double>(number) / static_cast<double>(most);
    line += bars[std::min<std::size_t>(7, static_cast<std::size_t>(share * 8))];
  }
  return line;
}

TerminalView::TerminalView(int fd, Clock::time_point first) : fd_(fd), terminal_(isatty(fd) == 1), next_(first) {}

void TerminalView::show(const std::vector<std::string>& lines) {
  if (!due()) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  draw(lines);
}

void TerminalView::write(std::string_view text) const {
  if (::write(fd_, text.data(), text.size()) < 0) return;
}

LiveView::LiveView(int fd) : TerminalView(fd, Clock::time_point::min()) {}

void LiveView::draw(const std::vector<std::string>& lines) {
  const auto [rows, columns] = size();
  assert(rows > 1 && columns > 1);
  std::string text = to_begin();
  lines_shown_ = std::min(lines.size(), rows - 1);
  widest_shown_ = 0;
  for (std::size_t i = 0; i < lines_shown_; ++i) {
    const std::string line = text::to_line(lines[i]);
    const std::string_view seen = cut_to_width(line, columns - 1);
    widest_shown_ = std::max(widest_shown_, text::utf8_width(seen));
    assert(widest_shown_ < columns);
    text.append(i == 0 ? "" : "\r\n").append(seen).append(erase_line);
  }
  // Below several lines the cursor waits at the beginning of the last one, so that the terminal's "^C" breaks no line.
  write(text.append(erase_below).append(lines_shown_ > 1 ? "\r" : ""));
}

void LiveView::resized() {
  TerminalView::resized();
  if (lines_shown_ == 0 || widest_shown_ < size().columns) return;
  write(erase_screen);
  lines_shown_ = 0;
}

void LiveView::clear() {
  if (lines_shown_ != 0) write(to_begin().append(erase_below));
  lines_shown_ = 0;
}

/// Moves the cursor to the first column of the first line.
std::string LiveView::to_begin() const {
  return lines_shown_ > 1 ? "\r\x1b[" + std::to_string(lines_shown_ - 1) + "A" : "\r";
}

// The control sequences are those of the VT102, which terminals have in common. Each drawing is one write(), because
// the command may write between any two.
//
// To reserve the last row, the cursor must leave it and its text must not be lost. One index (down; in the last row it
// scrolls) and one cursor-up do that and keep the column. They are not part of every drawing, because they make the
// terminal forget that a line is full and that the next character belongs in the next one. Saving and restoring the
// cursor does not.
//
// A command may reset the terminal, and with it the region, without our knowing. So every drawing sets the region,
// which is enough while the cursor is above the last row. For the other case the row is reserved again from time to
// time.
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

std::string to_row(std::size_t row) { return "\033[" + std::to_string(row) + ";1H"; }
std::string region_above(std::size_t row) {
  assert(row > 1);
  return "\033[1;" + std::to_string(row - 1) + "r";
}

/// Makes the whole terminal the region again, and empties the last row where it is ours.
std::string give_back(std::size_t rows, bool ours) {
  std::string text = std::string(save).append(whole_region);
  if (ours) text.append(to_row(rows)).append(no_style).append(clear_rest_of_line);
  return text.append(restore);
}

/// Erases the old line where the terminal's size has changed: terminals then keep the line, wrap it or move it, but
/// never above the cursor. The whole terminal must be the region.
std::string erase_below_cursor() { return std::string(down).append("\r").append(no_style).append(clear_below); }

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
  text.append(cut_to_width(text::to_line(lines[0]), now.columns - 1));
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
  sigset_t stops, before;  // another job may be in the foreground, for which the terminal may be set to stop us
  sigemptyset(&stops);
  sigaddset(&stops, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  write(text);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside) {
  if (beside == Beside::command) return std::make_unique<BottomLine>(fd);
  return std::make_unique<LiveView>(fd);
}

}  // namespace cmt::terminal
