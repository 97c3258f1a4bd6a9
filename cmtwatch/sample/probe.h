#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "cmtwatch/sample/metric.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// Whether reading a file of a process failed because the process has ended.
bool means_gone(const std::system_error& error);
/// Whether it failed because the process is another user's.
bool means_forbidden(const std::system_error& error);

/// Throws std::runtime_error, with the reason, where a process has no memory that could be measured: it is not there,
/// hidden, a kernel thread, or has ended and was not waited for.
void check_process(int pid, const std::string& root);

/// The result of measuring a process once. A process that could not be measured is never counted as 0.
struct Reading {
  enum class State { read, gone, refused };

  State state = State::gone;
  std::uint64_t bytes = 0;
};

/// Measures one figure of one process, again and again. It holds the process's folder in /proc open, so that another
/// process that gets the same pid is not mistaken for it.
class Probe {
 public:
  /// Throws std::system_error where there is no such process.
  Probe(int pid, Metric metric, const std::string& root = "/proc");

  Reading read();

  bool is_there();

  /// The name that it has now; the last known one where it is gone.
  const std::string& name();

 private:
  Reading read_without_page_tables();
  std::uint64_t read_rollup();

  Metric metric_;
  process::ProcessFolder folder_;
  process::Fd statm_;
  std::string name_;
  std::string buffer_;
};

}  // namespace cmt::watch
