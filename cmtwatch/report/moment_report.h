#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/recording/moment.h"

namespace cmt::watch {

/// The options of `peak` and `show`.
struct MomentOptions {
  enum class When { peak, least_available, at };

  std::string path;
  When when = When::peak;
  std::int64_t at_ns = 0;
  PidOrAll pid{};
  bool verbose = false;  ///< every process by itself
  bool bytes = false;
  bool json = false;
};

/// A moment for people: the parts of its memory, and its processes.
std::string moment_text(const Moment& moment, const MomentOptions& options);

/// Schema cmt.moment/1.
std::string moment_json(const Moment& moment);

}  // namespace cmt::watch
