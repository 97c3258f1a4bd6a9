/// Opens a trace as often as a replay has to read it.
#pragma once

#include <sys/types.h>

#include <string>

#include "cmtreplay/plan/prepared_trace.h"
#include "toolkit/process/proc_file.h"

namespace cmt::replay {

/// A trace that can be read more than once. A pipe is first copied to a temporary file.
class TraceSource {
 public:
  /// `path` "-" is standard input.
  explicit TraceSource(const std::string& path);

  const std::string& name() const { return name_; }
  /// The first defect of the part that was read, with its place. Empty: there is none.
  const std::string& first_defect() const { return first_defect_; }
  void note_defect(const Defect& defect) {
    if (first_defect_.empty()) first_defect_ = defect.place + ": " + defect.what;
  }

  /// Returns a descriptor at the beginning of the trace, which the caller closes. The previous descriptor must not be
  /// read any more.
  int open();

 private:
  std::string name_;
  std::string first_defect_{};
  process::Fd fd_;
  off_t begin_ = 0;  ///< standard input may be a file that was partly read
};

/// Reads and plans the trace of a source, which has to outlive the result. Throws std::runtime_error
/// with the source's name if it has too many threads or blocks.
PreparedTrace prepare(TraceSource& source, const TraceOptions& options, const PreparedTrace::Progress& progress);

}  // namespace cmt::replay
