#pragma once

#include <optional>
#include <string>
#include <vector>

#include "toolkit/terminal/terminal_view.h"

namespace cmt::output {

/// A line in the last row of a terminal, while a command writes to the rows above. These are made the scrolling region,
/// and the cursor is always restored, so that the command's output neither overwrites the line nor moves it.
///
/// Nothing is drawn where TERM is unset or `dumb` or there are fewer than three rows. While another job is in the
/// foreground, or the terminal hands out keys instead of lines, as it does for editors and other programs that take the
/// whole screen, nothing is drawn either, and the row is given back.
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
