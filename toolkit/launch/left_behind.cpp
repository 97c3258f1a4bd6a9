// Reads /proc/PID/environ: the environment with which a program was started. A forked child has its parent's.
#include "toolkit/launch/left_behind.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>

#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::launch {
namespace {

constexpr std::string_view not_followed("\0CMTTRACE_CHILD_OF=", 19);
constexpr std::string_view own_prefix = "cmttrace";  // of the names of collectors and supervisors

/// The number that the kernel gave last. It begins anew at its highest number. Throws std::system_error.
int last_pid() {
  std::istringstream line(process::read_file("/proc/loadavg"));
  std::string field;
  for (int i = 0; i < 5; ++i) line >> field;
  return std::atoi(field.c_str());
}

bool is_ours(int pid, const std::string& entry) try {
  const std::string environment = '\0' + process::read_file(process::path_of(pid, "environ"));
  if (environment.find(entry) == environment.npos) return false;
  if (environment.find(not_followed) != environment.npos) return false;
  const process::Stat stat = process::read_stat(pid);
  return !stat.zombie() && !stat.name.starts_with(own_prefix);
} catch (const std::exception&) {
  return false;  // it has just ended
}

}  // namespace

std::vector<int> left_behind(const std::string& variable) try {
  const std::string entry = '\0' + variable + '\0';
  const int own = getpid();
  const bool is_wrapped = last_pid() < own;
  std::vector<int> left;
  for (const int pid : process::numbers_in("/proc")) {
    if ((is_wrapped || pid > own) && pid != own && is_ours(pid, entry)) left.push_back(pid);
  }
  return left;
} catch (const std::system_error&) {
  return {};  // without /proc
}

}  // namespace cmt::launch
