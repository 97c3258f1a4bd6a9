/// Progress of work whose done share is known, with the time that is left: "reading, 43 %, 7 s left".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "toolkit/terminal/terminal.h"

namespace cmt::terminal {

/// "2 min 5 s left" of so many seconds, in the two largest units.
std::string time_left_text(double seconds);

/// Estimates the time that is left. The rest takes as much longer than the part that is done as it is larger.
class ShareDone {
 public:
  /// "43 %, 7 s left" after `seconds` of work, without the time in the first second and the first hundredth.
  static std::string text(double share, double seconds);

  /// The same since this object was made.
  std::string text(double share) const { return text(share, seconds()); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin_ = Clock::now();
};

/// Whether the standard output is a file. Else what is written there may reach the terminal, perhaps through a pager,
/// and a line of progress would spoil it.
bool is_output_file();

/// A line on a terminal about a file that is read, or about other work. Nothing is drawn in the first second, nor for a
/// file below 1 MiB.
class ProgressLine {
 public:
  explicit ProgressLine(int fd) : view_(fd) {}

  /// Whether show() would draw. `all`: 0 if it is not known.
  bool due(std::uint64_t all) const {
    constexpr std::uint64_t large = 1 << 20;
    return all >= large && view_.due() && done_.seconds() >= 1;
  }

  /// Draws "reading a.cmt, 43 %, 7 s left".
  void show(const std::string& file, std::uint64_t bytes, std::uint64_t all) {
    if (!due(all)) return;
    view_.show({"reading " + file + ", " + done_.text(static_cast<double>(bytes) / static_cast<double>(all))});
  }

  /// Draws "naming functions, 43 %, 7 s left".
  void show_work(const std::string& work, double share) {
    if (view_.due() && done_.seconds() >= 1) view_.show({work + ", " + done_.text(share)});
  }

  /// Erases the line: before anything else is written to the terminal.
  void clear() { view_.clear(); }

 private:
  ShareDone done_;
  LiveView view_;
};

}  // namespace cmt::terminal
