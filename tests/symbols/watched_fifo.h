/// A FIFO that notices whether somebody opens it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "toolkit/process/proc_file.h"

namespace cmt::fixture {

/// A FIFO whose both ends are open, so that nobody who opens it has to wait.
class WatchedFifo {
 public:
  explicit WatchedFifo(const std::string& path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    ends_ = process::Fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(ends_.get() >= 0);
    REQUIRE(inotify_add_watch(events_.get(), path.c_str(), IN_OPEN) >= 0);
  }

  /// A path that is only resolved (O_PATH) is not opened.
  bool was_opened() const {
    char buffer[4096];
    return read(events_.get(), buffer, sizeof buffer) > 0;
  }

 private:
  process::Fd events_, ends_;
};

}  // namespace cmt::fixture
