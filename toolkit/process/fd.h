#pragma once

#include <unistd.h>

#include <utility>

namespace cmt::process {

/// A descriptor, closed with its owner; -1: none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  void close() { *this = Fd(); }

 private:
  int fd_ = -1;
};

}  // namespace cmt::process
