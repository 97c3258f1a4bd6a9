/// Begins and ends the recording of a process that runs: everything that cmttrace --attach and --detach do to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cmttrace/attach/recording/library_settings.h"
#include "cmttrace/attach/recording/trace_files.h"
#include "toolkit/remote_call/remote_caller.h"
#include "toolkit/remote_call/stopped_thread.h"
#include "toolkit/remote_call/target.h"

namespace cmt::attach {

/// How a process is to be recorded.
struct AttachPlan {
  std::string library;                     ///< the path of libcmttrace.so,
  std::string collector;                   ///< and of cmttrace-collector
  Settings settings;                       ///< variables of libcmttrace(1), for the library and the collector
  std::string status_path;                 ///< a file that gets a line at the recording's begin and end
  std::optional<ChildRecording> children;  ///< nullopt: they are not recorded
  bool ignores_filter = false;             ///< attach although a filter of system calls cannot be read
};

/// A recording that has begun.
struct Attached {
  pid_t collector = -1;  ///< a child of this process, which writes the trace
  remote_call::Pauses pauses;
  std::uint32_t words = 0;               ///< addresses of the allocator that were replaced
  std::function<std::string()> message;  ///< what could not be reached or read so far; empty: nothing
};

/// Loads libcmttrace.so into a process, and starts a collector for it. To be called within as_tracer(). Throws
/// Refused, ThreadGone and std::system_error; the process goes on then as if nothing had been.
Attached attach(remote_call::Target& target, TraceFiles& files, const AttachPlan& plan);

/// The result of a detach.
struct Detached {
  remote_call::Pauses pauses;
  bool is_released = false;  ///< the memory that threads share with the collector was given back
};

/// Ends the recording of a process that this or another cmttrace has attached to. To be called within as_tracer().
/// Throws as attach().
Detached detach(remote_call::Target& target);

/// Whether an attach records the process, or was about to.
bool is_attached(remote_call::Target& target);

}  // namespace cmt::attach
