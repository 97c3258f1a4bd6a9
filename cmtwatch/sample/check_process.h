#pragma once

#include <string>

namespace cmt::watch {

/// Throws std::runtime_error where a process has no memory that could be measured, and says why: it is not there,
/// hidden, a kernel thread, or has ended and was not waited for.
void check_process(int pid, const std::string& root);

}  // namespace cmt::watch
