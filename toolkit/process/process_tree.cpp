#include "toolkit/process/process_tree.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "cmt/error.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::process {
namespace {

/// Nothing where the file is gone.
std::optional<std::string> text_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

void append_numbers(std::string_view text, std::vector<int>& numbers) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    int number = 0;
    const auto [rest, problem] = std::from_chars(at, end, number);
    if (problem == std::errc()) numbers.push_back(number);
    at = problem == std::errc() ? rest : at + 1;
  }
}

/// Nothing where this kernel does not list children.
std::optional<std::vector<int>> listed_children(int pid, const std::string& root) {
  const std::string tasks = path_of(pid, "task", root);
  std::vector<int> children;
  bool listed = false;
  for (const int task : numbers_in(tasks)) {
    const auto text = text_of(tasks + "/" + std::to_string(task) + "/children");
    if (!text) continue;
    listed = true;
    append_numbers(*text, children);
  }
  if (!listed) return std::nullopt;
  return children;
}

std::vector<int> children_by_parent(int pid, const std::string& root) {
  std::vector<int> children;
  for (const int candidate : read_pids(root)) {
    const auto text = text_of(path_of(candidate, "stat", root));
    if (text && !text->empty() && parse_stat(*text).parent == pid) children.push_back(candidate);
  }
  return children;
}

}  // namespace

std::vector<int> read_pids(const std::string& root) { return numbers_in(root); }

std::vector<int> read_children(int pid, const std::string& root) {
  if (auto listed = listed_children(pid, root)) return *listed;
  return text_of(path_of(pid, "stat", root)) ? children_by_parent(pid, root) : std::vector<int>();
}

std::vector<int> read_threads(int pid, const std::string& root) { return numbers_in(path_of(pid, "task", root)); }

bool share_memory(int pid, int other) { return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0; }

}  // namespace cmt::process
