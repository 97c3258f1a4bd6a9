#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace cmt::replay {

/// How a process ended.
struct Ending {
  int signal = 0;  ///< 0: it exited
  int status = 0;  ///< of its exit

  bool clean() const { return signal == 0 && status == 0; }
  /// "signal 11 (Segmentation fault)", "exit status 3".
  std::string text() const;
};

/// How a child is started.
struct Launch {
  std::vector<std::string> command;        ///< path first
  std::string preload = {};                ///< LD_PRELOAD; empty: it is not set, whatever our own environment says
  std::vector<std::string> settings = {};  ///< "NAME=VALUE", over what our own environment says
  int output_fd = 2;                       ///< its standard output
  int error_fd = 2;
};

/// A child process, killed and waited for with its owner. Its standard input is empty, its environment ours.
class Child {
 public:
  /// Throws std::system_error where it cannot be started.
  explicit Child(const Launch& launch);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill();
  /// Waits for its end.
  Ending wait();

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  Ending ending_;
};

}  // namespace cmt::replay
