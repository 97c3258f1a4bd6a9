#include "output/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

namespace cmt::output {
namespace {

std::size_t columns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/// The first `width` code points of a text.
std::string_view cut(std::string_view text, std::size_t width) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && width-- == 0) return text.substr(0, at);
  }
  return text;
}

}  // namespace

ProgressLine::ProgressLine(int fd) : fd_(fd), terminal_(isatty(fd) == 1) {}

void ProgressLine::show(std::string_view text) {
  if (!terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  write("\r\x1b[K" + std::string(cut(text, columns(fd_) - 1)));
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
