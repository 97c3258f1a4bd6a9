// Words for the time that is left.
#include "toolkit/terminal/progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "toolkit/output/numbers.h"

namespace cmt::terminal {

std::string time_left_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds < 0 ? 0 : seconds));
  if (whole >= 3600) return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min left";
  if (whole >= 60) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s left";
  return std::to_string(whole) + " s left";
}

std::string ShareDone::text(double share, double seconds) {
  const double done = std::clamp(share, 0.0, 1.0);
  const std::string percent = output::fixed(100 * done, 0) + " %";
  if (seconds < 1 || done < 0.01) return percent;
  return percent + ", " + time_left_text(seconds * (1 - done) / done);
}

bool is_output_file() {
  struct stat status {};
  return fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace cmt::terminal
