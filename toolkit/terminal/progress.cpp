#include "toolkit/terminal/progress.h"

#include <unistd.h>

#include <string>

#include "toolkit/terminal/terminal.h"

namespace cmt::output {
ProgressLine::ProgressLine(int fd) : fd_(fd), terminal_(isatty(fd) == 1) {}

void ProgressLine::show(std::string_view text) {
  if (!terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  write("\r\x1b[K" + std::string(cut_to_width(text, terminal_size(fd_).columns - 1)));
}

void ProgressLine::clear() {
  if (shown_) write("\r\x1b[K");
  shown_ = false;
}

/// A progress line that could not be written is nobody's concern.
void ProgressLine::write(std::string_view text) const {
  if (::write(fd_, text.data(), text.size()) < 0) return;
}

}  // namespace cmt::output
