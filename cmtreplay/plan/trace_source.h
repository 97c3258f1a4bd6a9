#pragma once

#include <string>

#include "cmtreplay/plan/shared_memory.h"

namespace cmt::replay {

/// An input that may be read more than once. What cannot seek is first copied to a file without a name.
class Source {
 public:
  /// `path` "-" is standard input. Throws std::system_error.
  explicit Source(const std::string& path);

  /// What messages call it.
  const std::string& name() const { return name_; }

  /// A descriptor at the beginning, the caller's. The one before must not be read any more.
  int open();

 private:
  void spool();

  std::string name_;
  Fd fd_;
  long begin_ = 0;  ///< standard input may stand anywhere
};

}  // namespace cmt::replay
