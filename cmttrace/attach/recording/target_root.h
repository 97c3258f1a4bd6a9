#pragma once

#include <string>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::attach {

/// The root folder of a process that sees other files than we do, by its mount namespace or chroot(2): there are the
/// files that its modules have come from. It stays when the process has ended.
class TargetRoot {
 public:
  /// Throws std::system_error where that of the process cannot be opened.
  explicit TargetRoot(int pid);

  bool is_other() const { return is_other_; }
  /// A path that leads to it, also for other programs, while this object exists.
  std::string path() const;

 private:
  process::Fd root_, namespace_;
  bool is_other_ = false;
};

/// Writes the names of functions into traces, as trace2cmt --symbolise finds them below the root. Returns a line for
/// each trace that stays without; it is as it was.
std::vector<std::string> name_functions(const TargetRoot& root, const std::vector<std::string>& traces);

}  // namespace cmt::attach
