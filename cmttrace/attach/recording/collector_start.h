/// Starts the collector of an attached process, as libcmttrace.so starts it for a command.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "preload/protocol.h"

namespace cmt::attach {

/// Starts cmttrace-collector for rings that are not our own: preload/program/collector_start.c does it for a program
/// that was started with the library. `outputs`: the files of the trace. `description`: what the collector is given, in
/// the form of a control block. The collector gets a copy: the process may be another user's, and can write to the
/// rings. It is a process group of its own, so that Ctrl-C ends us alone. Throws std::system_error.
pid_t start_collector(const std::string& program, int rings, int process, const std::vector<int>& outputs,
                      const Control& description, const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace cmt::attach
