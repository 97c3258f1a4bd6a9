#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cmttrace/attach/target.h"

namespace cmt::attach {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// What children of an attached process need to know, which start collectors themselves.
struct ChildRecording {
  std::string collector;    ///< the path of cmttrace-collector
  std::string templates;    ///< paths of traces as in CMTTRACE_OUT, of which each child has its own
  std::string status_path;  ///< the file of CMTTRACE_STATUS
};

/// The variables of libcmttrace(1) that the library has, as struct Attach holds them: "CMTTRACE_TIME=1\0". The others
/// of `settings` are the collector's. `children`: null where they are not recorded.
std::string settings_for_library(const Settings& settings, const ChildRecording* children);

/// Throws AttachRefused where children of a process could not start collectors, or create traces: they see other files
/// than we do.
void check_children(const Target& target, const ChildRecording& children);

/// Whether the library is going to look at the pages of blocks: as CMTTRACE_TOUCHED says, and by itself where the
/// process has no filter of system calls.
bool records_touched_pages(const Target& target, const Settings& settings);

}  // namespace cmt::attach
