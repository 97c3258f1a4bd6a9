/// Reports programs that this process is about to execute, and that will not be recorded. Most such
/// programs cannot do so themselves, because they do not load the tracer.
#pragma once

#include <stdbool.h>

enum Announcement {
  announced_nowhere,
  announced_in_status,
  announced_by_count,  ///< of the process's own trace: the file has no name here
};

/// A program as exec and posix_spawn name it.
struct Execution {
  int folder;  ///< that `path` is relative to, or the file itself if `path` is empty
  const char* path;
  bool is_searched;  ///< in PATH, if it has no slash
  char* const* environment;
};

/// Looks at the file's ELF headers, and at the environment for us. If the program will not be recorded, appends a line
/// to CMTTRACE_STATUS, or counts the program. Costs some ten system calls for most programs, and none
/// without CMTTRACE_STATUS. Uses 3 KiB of stack, no memory, and no lock: the caller may be a child of vfork.
enum Announcement execs_announce(const struct Execution* execution);

/// To be called after an exec has failed: withdraws the announcement.
void execs_take_back(enum Announcement where);
