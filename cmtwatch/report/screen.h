/// The full-screen view of cmtwatch play: keys and drawing.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>

#include "toolkit/command/interrupts.h"

namespace cmt::watch {

/// The meaning of a key in `play`.
enum class Key { none, quit, pause, next, back, first, last };

/// Removes the first key from the bytes that a terminal in raw mode has sent. q and Ctrl-C quit, the space bar pauses;
/// Enter, right and down go to the next moment, left and up to the one before, Home and End to the first and the last.
/// `none`: no key, or one without a meaning.
Key take_key(std::string& bytes);

/// Uses the whole terminal as one page, with its keys. The destructor restores it, also after SIGINT, SIGTERM, SIGHUP
/// and SIGQUIT.
class Screen {
 public:
  /// Whether standard input and output are terminals.
  static bool available();

  /// Throws std::system_error.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Draws a text, cut to the terminal's size, and a line at the bottom.
  void draw(const std::string& text, const std::string& status) const;

  /// Waits for the next key. `none`: the monotonic clock has come to `until_ns`. `quit`: also for a signal or a closed
  /// terminal.
  Key wait(std::optional<std::int64_t> until_ns);

 private:
  command::Interrupts interrupts_;
  termios before_{};
  std::string keys_;
};

}  // namespace cmt::watch
