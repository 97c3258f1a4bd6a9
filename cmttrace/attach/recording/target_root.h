/// Names functions of a process in a container, whose files have other paths here.
#pragma once

#include <string>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::attach {

/// The root folder of a process that sees other files than we do, by its mount namespace or chroot(2). It has the files
/// of the process's modules, and stays when the process has ended.
class TargetRoot {
 public:
  /// Throws std::system_error if the process's root cannot be opened.
  explicit TargetRoot(int pid);

  bool is_other() const { return is_other_; }
  /// A path that leads to it, also for other programs, while this object exists.
  std::string path() const;

 private:
  process::Fd root_, namespace_;
  bool is_other_ = false;
};

/// Writes the names of functions into traces, as trace2cmt --symbolise finds them below the root. Returns a line for
/// each trace that it left unchanged.
std::vector<std::string> name_functions(const TargetRoot& root, const std::vector<std::string>& traces);

}  // namespace cmt::attach
