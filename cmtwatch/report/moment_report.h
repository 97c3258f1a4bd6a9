/// The report of peak, show and play: one moment of a recording.
#pragma once

#include <string>

#include "cmtwatch/recording/moment.h"

namespace cmt::watch {

/// The options of `peak`, `show` and `play`.
struct MomentOptions {
  std::string path;
  bool peak = false;  ///< it is the moment with most memory
  PeakMetric metric = PeakMetric::pss;
  PidOrAll pid{};
  bool verbose = false;  ///< every process by itself
  bool bytes = false;
  bool json = false;
  std::size_t width = 0;  ///< of the terminal; 0: tables are as wide as they need
};

/// A moment for people: the parts of its memory, and its processes.
std::string moment_text(const Moment& moment, const MomentOptions& options);

/// Schema cmt.moment/1.
std::string moment_json(const Moment& moment, PeakMetric metric);

}  // namespace cmt::watch
