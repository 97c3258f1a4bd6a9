#include "toolkit/terminal/terminal_view.h"

#include <unistd.h>

#include "toolkit/terminal/bottom_line.h"
#include "toolkit/terminal/live_view.h"

namespace cmt::output {

TerminalView::TerminalView(int fd, Clock::time_point first) : fd_(fd), terminal_(isatty(fd) == 1), next_(first) {}

void TerminalView::show(const std::vector<std::string>& lines) {
  if (!due()) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  draw(lines);
}

void TerminalView::write(std::string_view text) const {
  if (::write(fd_, text.data(), text.size()) < 0) return;
}

std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside) {
  if (beside == Beside::command) return std::make_unique<BottomLine>(fd);
  return std::make_unique<LiveView>(fd);
}

}  // namespace cmt::output
