/// The settings that an attached process gets: it has no environment variables for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "toolkit/remote_call/target.h"

namespace cmt::attach {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The settings of children of an attached process, which start collectors themselves.
struct ChildRecording {
  std::string collector;    ///< the path of cmttrace-collector
  std::string templates;    ///< paths of traces as in CMTTRACE_OUT, of which each child has its own
  std::string status_path;  ///< the file of CMTTRACE_STATUS
};

/// The variables of libcmttrace(1) that the library has, as struct Attach holds them: "CMTTRACE_TIME=1\0". The others
/// of `settings` are the collector's. `children`: null if they are not recorded.
std::string settings_for_library(const Settings& settings, const ChildRecording* children);

/// Throws Refused if children of a process could not start collectors or create traces, because they see other
/// files than we do.
void check_children(const remote_call::Target& target, const ChildRecording& children);

/// Whether the library will look at the pages of blocks: if CMTTRACE_TOUCHED asks for it, and by default if the process
/// has no filter of system calls.
bool records_touched_pages(const remote_call::Target& target, const Settings& settings);

}  // namespace cmt::attach
