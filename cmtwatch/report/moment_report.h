#pragma once

#include <string>

#include "cmtwatch/commands/moment_options.h"
#include "cmtwatch/recording/moment.h"

namespace cmt::watch {

/// A moment for people: the parts of its memory, and its processes.
std::string moment_text(const Moment& moment, const MomentOptions& options);

/// Schema cmt.moment/1.
std::string moment_json(const Moment& moment);

}  // namespace cmt::watch
