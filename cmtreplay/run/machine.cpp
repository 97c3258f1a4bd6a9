// Reads kernel, processor, huge pages and C library from the system.
#include "cmtreplay/run/machine.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

/// The text between `begin` and `end` on the first line of a kernel's file that has `key`, or nothing.
std::optional<std::string> excerpt(const std::string& path, const std::string& key, const std::string& begin,
                                   const std::string& end) {
  try {
    const std::string text = process::read_file(path);
    const auto line = text.find(key);
    const auto from = line == text.npos ? line : text.find(begin, line);
    if (from == text.npos) return std::nullopt;
    const auto first = from + begin.size();
    return text.substr(first, text.find(end, first) - first);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Machine this_machine() {
  utsname kernel{};
  uname(&kernel);
  return {.kernel = std::string(kernel.sysname) + " " + kernel.release,
          .cpu = excerpt("/proc/cpuinfo", "model name", ": ", "\n"),
          .huge_pages = excerpt("/sys/kernel/mm/transparent_hugepage/enabled", "", "[", "]"),
          .libc = libc_name()};
}

std::string libc_name() { return std::string("glibc ") + gnu_get_libc_version(); }

}  // namespace cmt::replay
