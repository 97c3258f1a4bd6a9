// Finds the reason for a refusal of ptrace(2) in /proc: the tracer of the process, or kernel.yama.ptrace_scope.
#include "toolkit/process/stopping/traceable.h"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <fstream>
#include <system_error>

#include "toolkit/process/stat.h"

namespace cmt::process {

std::string called(int pid) {
  try {
    return std::to_string(pid) + " (" + read_stat(pid).name + ")";
  } catch (const std::exception&) {
    return std::to_string(pid);
  }
}

std::string why_not_traceable(int tid, int error) {
  int tracer = 0;
  try {
    tracer = read_status(tid).tracer;
  } catch (const std::system_error&) {
  }
  if (tracer != 0) return called(tracer) + " traces it already";
  if (error != EPERM && error != EACCES) return std::generic_category().message(error);
  int yama = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> yama;
  if (yama == 3) return "kernel.yama.ptrace_scope is 3: nobody may trace here until the machine is started anew";
  if (yama == 2) return "kernel.yama.ptrace_scope is 2: CAP_SYS_PTRACE is needed (run this as root)";
  if (yama == 1 && geteuid() != 0)
    return "kernel.yama.ptrace_scope is 1: run this as root, or set it to 0 (sysctl kernel.yama.ptrace_scope=0)";
  return "it is another user's, or has more rights than this process: CAP_SYS_PTRACE is needed (run this as root)";
}

}  // namespace cmt::process
