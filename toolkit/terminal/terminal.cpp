#include "toolkit/terminal/terminal.h"

#include <sys/ioctl.h>

namespace cmt::output {

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= 1 || size.ws_row <= 1) return {};
  return {size.ws_row, size.ws_col};
}

std::string_view cut_to_width(std::string_view text, std::size_t width) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && width-- == 0) return text.substr(0, at);
  }
  return text;
}

}  // namespace cmt::output
