// A terminal sends an arrow as Escape, "[" or "O", and a letter; Home and End likewise or with a number and "~". In
// general, digits and semicolons follow Escape and "[", and then one final byte (ECMA-48, 5.4).

#include "cmtwatch/report/screen.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "libcmt/text/utf8.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/system.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::watch {
namespace {

// Control sequences of ECMA-48 and xterm.
constexpr std::string_view begin_page = "\x1b[?1049h\x1b[?25l";  // the alternate page, no cursor
constexpr std::string_view end_page = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view to_top = "\x1b[H", clear_rest_of_line = "\x1b[K", clear_below = "\x1b[J";
constexpr std::string_view inverse = "\x1b[7m", plain = "\x1b[0m";

Key key_of_sequence(std::string_view sequence) {
  if (sequence == "C" || sequence == "B") return Key::next;
  if (sequence == "D" || sequence == "A") return Key::back;
  if (sequence == "H" || sequence == "1~" || sequence == "7~") return Key::first;
  if (sequence == "F" || sequence == "4~" || sequence == "8~") return Key::last;
  return Key::none;
}

Key key_of_byte(char byte) {
  constexpr char control_c = 3, control_d = 4;
  if (byte == 'q' || byte == 'Q' || byte == control_c || byte == control_d) return Key::quit;
  if (byte == ' ') return Key::pause;
  return byte == '\r' || byte == '\n' ? Key::next : Key::none;
}

void write_to_terminal(std::string_view text) { process::write_all(STDOUT_FILENO, text, "the terminal"); }

}  // namespace

Key take_key(std::string& bytes) {
  if (bytes.empty()) return Key::none;
  const bool sequence = bytes.size() >= 3 && bytes[0] == '\x1b' && (bytes[1] == '[' || bytes[1] == 'O');
  if (!sequence) {
    const char byte = bytes[0];
    bytes.erase(0, 1);
    return key_of_byte(byte);
  }
  const auto end = bytes.find_first_not_of("0123456789;", 2);
  const std::size_t length = end == bytes.npos ? bytes.size() : end + 1;
  const Key key = key_of_sequence(std::string_view(bytes).substr(2, length - 2));
  bytes.erase(0, length);
  return key;
}

bool Screen::available() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

Screen::Screen() {
  if (tcgetattr(STDIN_FILENO, &before_) != 0) throw std::system_error(errno, std::generic_category(), "the terminal");
  termios raw = before_;
  raw.c_lflag &=
      ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);  // Ctrl-C becomes a key, so that the terminal is restored
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
    throw std::system_error(errno, std::generic_category(), "the terminal");
  write_to_terminal(begin_page);
}

/// Errors are ignored: a terminal that is gone need not be restored.
Screen::~Screen() {
  if (::write(STDOUT_FILENO, end_page.data(), end_page.size()) < 0) errno = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::draw(const std::string& text, const std::string& status) const {
  const auto [rows, columns] = terminal::terminal_size(STDOUT_FILENO);
  std::string page(to_top);
  std::string_view rest = text;
  for (std::size_t row = 0; row + 1 < rows; ++row) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    page.append(terminal::cut_to_width(text::to_line(line), columns)).append(clear_rest_of_line).append("\r\n");
  }
  page.append(inverse).append(terminal::cut_to_width(text::to_line(status), columns)).append(plain).append(clear_below);
  write_to_terminal(page);
}

Key Screen::wait(std::optional<std::int64_t> until_ns) {
  for (;;) {
    while (!keys_.empty()) {
      if (const Key key = take_key(keys_); key != Key::none) return key;
    }
    const std::int64_t left_ns = until_ns ? *until_ns - process::now_ns() : 0;
    if (until_ns && left_ns <= 0) return Key::none;
    const timespec left{.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {interrupts_.fd(), POLLIN, 0}};
    if (ppoll(ready, 2, until_ns ? &left : nullptr, nullptr) <= 0) continue;
    if (ready[1].revents != 0) return Key::quit;
    char bytes[64];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Key::quit;
    keys_.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace cmt::watch
