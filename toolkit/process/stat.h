/// Processes: their figures in /proc/PID/stat, status, statm and io, the stack pointers of their threads, and which
/// there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::process {

/// /proc/PID/stat. The kernel gives a pid to another process later; pid and start time together name one process for
/// good.
struct Stat {
  int pid = 0;
  std::string name;  ///< at most 15 bytes, blanks and brackets among them
  char state = '?';  ///< R running, S sleeping, Z zombie…
  int parent = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;  ///< those that read from a disk
  std::uint64_t user_ticks = 0;    ///< of processor time, sysconf(_SC_CLK_TCK) a second
  std::uint64_t system_ticks = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;    ///< after the machine's start
  std::uint64_t stack_pointer = 0;  ///< 0: hidden, as Linux does since 4.11 for a thread that lives
  bool kernel_thread = false;
  std::optional<int> exit_signal{};  ///< sent to its parent when it ends; 0: none, and wait() does not see it

  bool zombie() const { return state == 'Z' || state == 'X'; }
};

/// Throws FormatError for any other text.
Stat parse_stat(std::string_view text);

/// Throws std::system_error if the process is gone.
Stat read_stat(int pid, const std::string& root = "/proc");

/// /proc/PID/status. The kernel keeps the memory counters per processor, so that they may be off by some tens of pages;
/// smaps is exact and expensive.
struct Status {
  std::uint64_t resident_bytes_peak = 0;  ///< VmHWM: since the start, or since `5` was written to clear_refs
  std::uint64_t resident_bytes = 0;       ///< VmRSS
  std::uint64_t resident_file_bytes = 0;
  std::uint64_t swapped_bytes = 0;
  int tracer = 0;              ///< the thread that traces it with ptrace; 0: none
  std::uint64_t switches = 0;  ///< voluntary_ctxt_switches: how often the thread gave up its processor
};

/// A figure that the text lacks stays 0: a kernel thread has no memory of its own.
Status parse_status(std::string_view text);

Status read_status(int pid, const std::string& root = "/proc");

/// /proc/PID/statm, in pages. Reading it costs 10 us.
struct Statm {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  std::uint64_t shared_pages = 0;  ///< file pages and shared memory: resident less shared is anonymous
};

Statm parse_statm(std::string_view text);

/// /proc/PID/io, in bytes since the process's start. A figure that this kernel does not have is nothing.
struct Traffic {
  std::optional<std::uint64_t> read_call_bytes{};     ///< rchar: read by system calls, from disks or not
  std::optional<std::uint64_t> written_call_bytes{};  ///< wchar
  std::optional<std::uint64_t> read_bytes{};          ///< from disks
  std::optional<std::uint64_t> written_bytes{};       ///< to disks
};

Traffic parse_io(std::string_view text);

/// The stack pointer of a thread that waits in the kernel, from the text of /proc/PID/task/TID/syscall: the last number
/// but one. Returns nothing for a thread that runs.
std::optional<std::uint64_t> parse_stack_pointer(std::string_view text);

/// Reads the stack pointer from there, else from the thread's stat. Returns nothing also for a thread that is another
/// user's, or gone.
std::optional<std::uint64_t> read_stack_pointer(const ProcessFolder& process, int thread, std::string& buffer);

/// The pids of all processes, ascending.
std::vector<int> read_pids(const std::string& root = "/proc");

/// The children of a process, from /proc/PID/task/*/children. A kernel without CONFIG_PROC_CHILDREN has no such files:
/// then from the parents that all processes name. Empty if the process is gone. While processes come and go the kernel
/// may leave one out of a list. So a caller who must not lose one remembers those seen before.
std::vector<int> read_children(int pid, const std::string& root = "/proc");

/// The threads of a process, ascending. The first has the pid of the process. Empty if it is gone. If a thread ends
/// meanwhile, the kernel leaves out others that run on (next_tid() in its fs/proc/base.c).
std::vector<int> read_threads(int pid, const std::string& root = "/proc");

/// Whether a process of this machine has these threads and no others at this moment. True if it is gone.
bool are_all_threads(int pid, const std::vector<int>& threads);

bool has_thread(int pid, int thread);

/// Whether two processes run in the same memory, as a child of vfork does until it executes a program. False also if we
/// may not ask: kcmp(2) needs the right to trace both.
bool share_memory(int pid, int other);

}  // namespace cmt::process
