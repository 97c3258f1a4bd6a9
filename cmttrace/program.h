#pragma once

#include <string>

namespace cmt::trace_launcher {

/// Where libcmttrace.so is: beside this program as it was built, or where it was installed. Throws std::runtime_error
/// where it is at neither place.
std::string tracer_path();

/// Where cmttrace-collector is, as the tracer finds it. Throws std::runtime_error.
std::string collector_path();

/// Why a program cannot be recorded, though it can be run: it is linked statically, or runs with another user's rights.
/// Empty where nothing speaks against it, or `word` is no program.
std::string obstacle(const std::string& word);

}  // namespace cmt::trace_launcher
