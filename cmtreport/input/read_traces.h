#pragma once

#include <string>
#include <vector>

#include "cmt/header.h"
#include "cmtreport/report/recording.h"

namespace cmt::report {

struct ReadSettings {
  std::string tool;
  bool strict = false;
  FunctionOptions functions{};
  std::vector<std::string> debug_directories{};
  unsigned jobs = 1;  ///< threads that may work at once
};

/// Reads each trace once, one after the other, and puts all on one axis: time, where every trace has times and, of
/// several, says when it began on the monotonic clock of one boot of one machine (their wall clocks agree with it);
/// else events, or of several shares of each trace's events. Of several, each is opened twice. Throws FormatError and
/// std::system_error.
Recording read_traces(const std::vector<std::string>& paths, const ReadSettings& settings);

/// Throws FormatError where an option about functions is given, and the trace has no stacks.
void require_stacks_for(const FunctionOptions& functions, const Header& header, const std::string& path);

}  // namespace cmt::report
