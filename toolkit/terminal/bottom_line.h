#pragma once

#include <optional>
#include <string>
#include <vector>

#include "toolkit/terminal/terminal_view.h"

namespace cmt::output {

/// A line in a terminal's last row, while a command writes to the rest of it. The rows above are made the scrolling
/// region, and the cursor is always put back, so that what the command writes neither meets the line nor moves it.
///
/// Nothing is drawn where TERM is unset or `dumb` or there are fewer than three rows, and nothing while the terminal is
/// not ours: another job is in its foreground, or it hands out keys instead of lines, as it does for editors and
/// whatever takes the whole screen. Then the row is given back.
class BottomLine : public TerminalView {
 public:
  explicit BottomLine(int fd);
  ~BottomLine() override { BottomLine::clear(); }

  /// Erases the line, and makes the whole terminal the scrolling region again.
  void clear() override;

 private:
  void draw(const std::vector<std::string>& lines) override;
  bool terminal_is_ours() const;

  bool understood_;                         ///< TERM names a terminal that understands what we write
  std::optional<TerminalSize> drawn_on_{};  ///< the terminal's size when we drew; none: the last row is not ours
  Clock::time_point reserve_again_{};
};

}  // namespace cmt::output
