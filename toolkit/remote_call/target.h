/// The process that an attach is for: its modules, its functions, and the reasons to refuse it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "toolkit/process/proc_file.h"
#include "toolkit/remote_call/modules.h"
#include "toolkit/remote_call/remote_memory.h"
#include "toolkit/remote_call/unwind/zones.h"

namespace cmt::remote_call {

/// A process cannot be attached to, or be detached from; the message has the reason, and what can be done.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Addresses of functions to call in the process. 0: it does not have the function.
struct TargetFunctions {
  std::uint64_t dlopen = 0;
  std::uint64_t dlopen_flags = 0;       ///< beside RTLD_NOW: those of __libc_dlopen_mode
  std::uint64_t system_call = 0;        ///< libc's syscall(2)
  std::uint64_t return_trampoline = 0;  ///< __restore_rt
};

/// A process that runs, with all that an attach needs. Everything is read from its memory and from /proc.
class Target {
 public:
  /// Throws Refused if an attach cannot reach the process: it does not exist, may not be traced, or has no
  /// dynamic loader of glibc.
  explicit Target(int pid);

  int pid() const { return pid_; }
  /// "4711 (redis-server)".
  const std::string& called() const { return called_; }
  /// A file descriptor of the process (pidfd_open(2)).
  int descriptor() const { return descriptor_.get(); }
  bool has_ended() const;

  const RemoteMemory& memory() const { return memory_; }
  const std::vector<process::Mapping>& maps() const { return maps_; }
  const std::vector<Module>& modules() const { return modules_; }
  const Zones& zones() const { return *zones_; }
  const TargetFunctions& functions() const { return functions_; }
  /// The library that an earlier attach has left there, or null.
  const Module* stub() const;

  /// Reads the mappings anew, for threads that have begun. Throws std::system_error.
  void read_maps_again() { maps_ = read_maps(pid_); }
  /// Reads everything anew: the process may have loaded libraries.
  void read_again();

  /// A copy of a descriptor of the process. Throws std::system_error.
  process::Fd take_descriptor(int fd) const;

 private:
  void check_program() const;
  void find_functions();

  int pid_;
  std::string called_;
  process::Fd descriptor_;
  RemoteMemory memory_;
  std::vector<process::Mapping> maps_;
  std::vector<Module> modules_;
  EntryPoints entries_;
  std::unique_ptr<const Zones> zones_;
  TargetFunctions functions_;
};

/// "4711 (redis-server)"; without the name if it cannot be read.
std::string called(int pid);

/// "No such process".
std::string error_text(int error);

/// Words the reason why ptrace(2) is refused: another process traces the target, it is another user's, Yama forbids it.
/// `error`: an errno.
std::string why_not_traceable(int tid, int error);

/// Keeps other cmttraces from attaching to a process or detaching from it meanwhile. It ends with this process. The
/// lock (flock(2)) is on /proc/PID/mem, which only those can open who may trace the process.
class TargetLock {
 public:
  /// Throws Refused if another cmttrace does not finish within two seconds.
  explicit TargetLock(const Target& target);

 private:
  process::Fd memory_;
};

/// Throws Refused for processes that a detach accepts but an attach does not: they are stopped, recorded by a
/// preload, or have no /proc.
void check_attachable(const Target& target);

}  // namespace cmt::remote_call
