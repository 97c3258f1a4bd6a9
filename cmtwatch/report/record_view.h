#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmtwatch/sample/summed.h"
#include "toolkit/terminal/terminal_view.h"

namespace cmt::watch {

/// What `record` shows while it goes on: on a terminal the last moments as columns, drawn over in place; elsewhere a
/// line a moment. A command's streams are its own: beside it there is one line, on a terminal only.
class RecordView {
 public:
  explicit RecordView(output::Beside beside);

  /// A moment of the recording: its number, its time since the recording began, and what was recorded.
  void show(std::int64_t tick, std::int64_t time_ns, std::size_t processes, Summed memory);

  /// The terminal has another size.
  void resized();

  /// Takes away what is drawn: before anything else is written, before we stop, and at the end.
  void clear() { live_->clear(); }

  /// The moment of those shown that had most, and what recording cost in all, as a share of a processor.
  void end(double cost_share);

 private:
  struct Moment {
    std::int64_t tick = 0;
    std::int64_t time_ns = 0;
    std::size_t processes = 0;
    Summed memory{};
  };

  void draw();
  void print(const std::string& line);

  output::Beside beside_;
  std::unique_ptr<output::TerminalView> live_;
  bool prints_;
  std::uint64_t moments_ = 0;
  Moment last_, peak_;
  std::vector<std::uint64_t> recent_;
};

}  // namespace cmt::watch
