/// Makes node list its functions, so that call stacks have their names. V8 compiles functions while the program runs,
/// and lists them in /tmp/perf-PID.map if two options ask for it. They cost a server some 1 % more memory.
#pragma once

#include <optional>
#include <string>

#include "cmttrace/options.h"

namespace cmt::trace_launcher {

inline constexpr const char* node_name_options = "--perf-basic-prof --interpreted-frames-native-stack";

/// The value of NODE_OPTIONS for a command whose program is `file`: that of our environment, with node_name_options.
/// Nothing if the program is no node that takes these options, or if the names are not wanted.
///
/// A recording without stacks or with --frames=none needs no names. One with --keep or --sample-bytes may go on for
/// weeks, and the list would grow. The command, or NODE_OPTIONS, may choose --perf-basic-prof or
/// --no-perf-basic-prof itself.
std::optional<std::string> named_node_options(const Options& options, const std::string& file);

}  // namespace cmt::trace_launcher
