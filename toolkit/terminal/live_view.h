#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "toolkit/terminal/terminal_view.h"

namespace cmt::output {

/// Some lines at the bottom of a terminal that nobody else writes to, drawn over in place; no more than it has rows.
class LiveView : public TerminalView {
 public:
  explicit LiveView(int fd);
  ~LiveView() override { LiveView::clear(); }

  /// The terminal may have broken the lines anew. Where they became too wide nobody knows where they stand now, and the
  /// screen is cleared.
  void resized() override;

  void clear() override;

 private:
  void draw(const std::vector<std::string>& lines) override;
  std::string to_begin() const;

  std::size_t lines_shown_ = 0;
  std::size_t widest_shown_ = 0;
};

}  // namespace cmt::output
