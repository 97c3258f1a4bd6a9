/// The process whose threads are to call functions: its modules, its functions, and the reasons to refuse it.
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

/// A process cannot be attached to, detached from, or made to call a function; the message has the reason, and what can
/// be done.
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

/// The C library of a process. Calls need glibc.
enum class CLibrary { glibc, musl, linked_statically, unknown };

/// A process that runs, with all that calls in it need. Everything is read from its memory and from /proc.
class Target {
 public:
  /// Throws Refused if the process does not exist, may not be traced, is a thread of the kernel, or a 32-bit program.
  explicit Target(int pid);

  int pid() const { return pid_; }
  /// "4711 (redis-server)".
  const std::string& called() const { return called_; }
  /// A file descriptor of the process (pidfd_open(2)).
  int descriptor() const { return descriptor_.get(); }
  bool has_ended() const;
  /// The process has replaced the program that has been read here (execve(2)). False if it has ended.
  bool has_begun_another_program() const;

  const RemoteMemory& memory() const { return memory_; }
  const std::vector<process::Mapping>& maps() const { return maps_; }
  const std::vector<Module>& modules() const { return modules_; }
  const Zones& zones() const { return *zones_; }
  const TargetFunctions& functions() const { return functions_; }
  CLibrary c_library() const;
  /// libc.so of glibc, or null.
  const Module* libc() const;
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

/// "No such process".
std::string error_text(int error);

/// Keeps other processes of cmt from calling functions there meanwhile. It ends with this process. The lock (flock(2))
/// is on /proc/PID/mem, which only those can open who may trace the process.
class TargetLock {
 public:
  /// Throws Refused if another one does not finish within two seconds.
  explicit TargetLock(const Target& target);

 private:
  process::Fd memory_;
};

/// Throws Refused if no thread of the process can call a function now: it is stopped by a signal, has ended, or another
/// process traces it.
void check_callable(const Target& target);

}  // namespace cmt::remote_call
