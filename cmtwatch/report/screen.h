#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>

#include "cmtwatch/report/keys.h"
#include "toolkit/command/interrupts.h"

namespace cmt::watch {

/// The terminal as one page that is drawn again and again, with its keys, while it lives; then as it was, whatever ends
/// us politely.
class Screen {
 public:
  /// Whether standard input and output are terminals.
  static bool available();

  /// Throws std::system_error.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// A text, cut where the terminal ends, and a line at the bottom.
  void draw(const std::string& text, const std::string& status) const;

  /// The next key: `none` when the monotonic clock comes to `until_ns`, `quit` also for a signal or a closed terminal.
  Key wait(std::optional<std::int64_t> until_ns);

 private:
  command::Interrupts interrupts_;
  termios before_{};
  std::string keys_;
};

}  // namespace cmt::watch
