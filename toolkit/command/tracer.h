#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cmt::command {

/// Where libcmttrace.so is: beside this program as it was built, or where it was installed. Throws std::runtime_error
/// where it is at neither place.
std::string tracer_path();

/// Where cmttrace-collector is, as the tracer finds it. Throws std::runtime_error.
std::string collector_path();

/// Why a program cannot be recorded, though it can be run: it is linked statically, or runs with another user's rights.
/// Empty where nothing speaks against it, or `word` is no program.
std::string obstacle(const std::string& word);

/// What a command's environment must say for the tracer to be loaded into it and to write to `output` (CMTTRACE_OUT),
/// of the command alone or, to follow, of its children too. Throws as tracer_path().
std::vector<std::pair<std::string, std::string>> tracing_environment(const std::string& output, bool follow);

}  // namespace cmt::command
