#pragma once

#include <cerrno>
#include <system_error>

namespace cmt::watch {

/// What reading a file of a process failed for: the process has ended, or is not ours.
inline bool says_gone(const std::system_error& error) {
  return error.code().value() == ENOENT || error.code().value() == ESRCH;
}

inline bool says_forbidden(const std::system_error& error) {
  return error.code().value() == EACCES || error.code().value() == EPERM;
}

}  // namespace cmt::watch
