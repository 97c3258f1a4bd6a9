#include "toolkit/process/share_memory.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cmt::process {

bool share_memory(int pid, int other) { return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0; }

}  // namespace cmt::process
