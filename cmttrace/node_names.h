/// Makes node list its functions, so that call stacks have their names. V8 compiles functions while the program runs,
/// and lists them in /tmp/perf-PID.map if two options ask for it. A server makes some 0.3 % more allocations with them.
/// The option --perf-basic-prof also leaves a file isolate-*-v8.log in the folder where node was started.
///
/// V8 refuses code caches and snapshots that were made with other options. A program may then fail. Nearly all options
/// of V8 count, also if they are set while it runs.
#pragma once

#include <string>

#include "cmttrace/options.h"

namespace cmt::trace_launcher {

inline constexpr const char* node_name_options = "--perf-basic-prof-only-functions --interpreted-frames-native-stack";

/// Whether NODE_OPTIONS gets node_name_options.
struct NodeNames {
  /// `chosen`: the command or NODE_OPTIONS has --perf-basic-prof itself. `switched_off`: it has --no-perf-basic-prof,
  /// after any other. `snapshot`: it has an option of a snapshot, which was or will be made without the options.
  /// `refused`: this node does not take the options.
  enum class State { not_wanted, chosen, switched_off, snapshot, refused, added };

  State state = State::not_wanted;
  std::string options{};  ///< if added: the value of NODE_OPTIONS, with that of our environment
};

/// Decides for a command whose program is `file`.
///
/// A recording without stacks or with --frames=none needs no names. One with --keep or --sample-bytes may go on for
/// weeks, and the list would grow.
NodeNames node_names_of(const Options& options, const std::string& file);

}  // namespace cmt::trace_launcher
