#include "cmtreplay/matrix/time_left.h"

#include <cmath>

#include "toolkit/output/numbers.h"

namespace cmt::replay {

std::string TimeLeft::text(double share) const {
  const double done = done_ + current_ * share;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (total_ <= 0 || done < total_ / 100 || seconds < 1) return "";
  return "; " + output::fixed(100 * done / total_, 0) + " %, " + time_left_text(seconds * (total_ - done) / done);
}

std::string time_left_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds < 0 ? 0 : seconds));
  if (whole >= 3600) return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min left";
  if (whole >= 60) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s left";
  return std::to_string(whole) + " s left";
}

}  // namespace cmt::replay
