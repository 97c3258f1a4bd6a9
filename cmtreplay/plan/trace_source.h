#pragma once

#include <string>

#include "cmtreplay/plan/shared_memory.h"

namespace cmt::replay {

/// A trace that can be read more than once. A pipe is first copied to a temporary file without a name.
class TraceSource {
 public:
  /// `path` "-" is standard input. Throws std::system_error.
  explicit TraceSource(const std::string& path);

  /// For messages.
  const std::string& name() const { return name_; }

  /// A descriptor at the beginning of the trace, which the caller closes. The previous one must not be read any more.
  int open();

 private:
  std::string name_;
  Fd fd_;
  long begin_ = 0;  ///< an offset: standard input may be a file that was partly read
};

}  // namespace cmt::replay
