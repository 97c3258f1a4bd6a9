#include "toolkit/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "toolkit/output/utf8.h"

namespace cmt::output {
namespace {

constexpr std::array<const char*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Control sequences of ECMA-48.
constexpr std::string_view erase_line = "\x1b[K", erase_below = "\x1b[J", erase_screen = "\x1b[H\x1b[2J";

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= 1 || size.ws_row <= 1) return {};
  return {size.ws_row, size.ws_col};
}

std::string_view cut_to_width(std::string_view text, std::size_t width) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && width-- == 0) return text.substr(0, at);
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
  std::string text = to_begin();
  lines_shown_ = std::min(lines.size(), rows - 1);
  widest_shown_ = 0;
  for (std::size_t i = 0; i < lines_shown_; ++i) {
    const std::string line = to_line(lines[i]);
    const std::string_view seen = cut_to_width(line, columns - 1);
    widest_shown_ = std::max(widest_shown_, utf8_width(seen));
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

std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside) {
  if (beside == Beside::command) return std::make_unique<BottomLine>(fd);
  return std::make_unique<LiveView>(fd);
}

}  // namespace cmt::output
