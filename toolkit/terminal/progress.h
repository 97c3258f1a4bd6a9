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

/// A line on a terminal about work that may take more than a second. Nothing is drawn in the first second.
class ProgressLine {
 public:
  explicit ProgressLine(int fd) : view_(fd) {}

  /// Draws "reading, 43 %, 7 s left". `done` of `total`; a total of 0 is not known, and draws nothing.
  void show(const std::string& what, std::uint64_t done, std::uint64_t total) {
    if (total == 0 || !view_.due() || done_.seconds() < 1) return;
    view_.show({what + ", " + done_.text(static_cast<double>(done) / static_cast<double>(total))});
  }

  /// Erases the line: before anything else is written to the terminal.
  void clear() { view_.clear(); }

 private:
  ShareDone done_;
  LiveView view_;
};

}  // namespace cmt::terminal
