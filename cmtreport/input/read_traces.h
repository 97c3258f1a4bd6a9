/// Reads the traces of a report, and puts them on one axis.
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
  unsigned jobs = 1;   ///< threads that may work at once
  std::string pool{};  ///< the pool whose blocks are counted; empty: malloc's are
};

/// Reads each trace once, one after the other, and puts all on one axis. The axis of one trace is time, or events if it
/// has no times. Several traces have an axis of time if each has times and states its start on the monotonic clock. The
/// wall clocks, where known, must agree with these starts, so that all can be of one boot of one machine.
///
/// Otherwise their axis is shares of each trace's events. Each of several traces is opened twice. Throws FormatError
/// and std::system_error.
Recording read_traces(const std::vector<std::string>& paths, const ReadSettings& settings);

/// Throws FormatError if an option about functions is given and the trace has no stacks.
void require_stacks_for(const FunctionOptions& functions, const Header& header, const std::string& path);

}  // namespace cmt::report
