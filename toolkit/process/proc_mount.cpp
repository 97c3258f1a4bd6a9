// Finds out whether /proc is mounted by the kind of its file system: an empty folder may be in its place.
#include "toolkit/process/proc_mount.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <stdexcept>
#include <system_error>

namespace cmt::process {

bool is_proc_mounted() {
  struct statfs mount {};
  return statfs("/proc", &mount) == 0 && mount.f_type == PROC_SUPER_MAGIC;
}

void need_proc(const std::string& root) {
  if (root == "/proc" && !is_proc_mounted()) throw std::runtime_error(proc_is_missing);
}

std::filesystem::path own_program() {
  const char* const link = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(link, error);
  if (!error) return program;
  need_proc();
  throw std::system_error(error, link);
}

}  // namespace cmt::process
