// Fields of the control block that the program writes before its collector begins.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "preload/protocol.h"

namespace cmt::collector {

/// A copy of the fields of Control that the program writes before the collector starts. The hard thing: the program can
/// write to the shared memory at any time, by mistake or on purpose, and with `cmttrace --attach` it may be another
/// user's. So the collector reads none of them a second time.
struct StartFacts {
  std::uint32_t process = 0;      ///< the program, as the collector knows it (process_of)
  std::uint32_t own_process = 0;  ///< as it knows itself
  bool is_outside = false;        ///< the program may see other files: cmttrace has attached to it
  std::uint64_t start_stamp = 0, start_ns = 0, start_wall = 0;
  std::uint64_t own_start_ns = 0;  ///< start_ns as the program's clock has it, which names the recording in the status
  std::uint32_t rings_limit = 0, forked = 0, outputs = 0;
  std::uint64_t stacks_at = 0, touched_min = 0, sample_bytes = 0;
  bool has_stacks_of_frees = false;
  bool clock_is_ns = false;       ///< stamps are nanoseconds / 16
  bool has_made_control = false;  ///< the FIFO at control_path is the recording's own
  std::string program{}, allocator{}, command{};
  std::array<std::string, outputs_max> paths{};  ///< without outputs, the first is that of the profiles
  std::string rings_path{}, control_path{}, status_path{}, pprof_path{};

  /// Returns nothing if a count is above its limit, or a text has no end.
  static std::optional<StartFacts> read(const Control& control);
  /// Converts the start of a process that runs, and may be in another time namespace, to our clock.
  void convert_start();
};

}  // namespace cmt::collector
