#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trace_file.h"

namespace trace2cmt {

/// What a check of a trace came to.
struct Verdict {
  std::uint64_t faults = 0;
  std::string checked;  ///< in words, where there is no fault
};

/// Checks all that a trace promises: of a .cmt every checksum, each block by itself and against its neighbours, index,
/// totals and tail; of any trace the invariants of its events. `tell` gets a line for each fault. Throws
/// std::system_error, and FormatError for what is no trace.
Verdict verify(const TraceFile& file, const std::function<void(const std::string&)>& tell);

/// The part of it for a .cmt.
Verdict verify_cmt(const TraceFile& file, const std::function<void(const std::string&)>& tell);

}  // namespace trace2cmt
