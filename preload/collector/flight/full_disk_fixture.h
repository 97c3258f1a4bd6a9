// A disk that is full for a while, for tests: no file can grow beyond a length.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace cmt::collector {

/// While it exists, a write beyond `bytes` writes a part or fails, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_before_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_{};
};

}  // namespace cmt::collector
