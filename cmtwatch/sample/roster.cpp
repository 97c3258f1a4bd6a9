#include "cmtwatch/sample/roster.h"

#include "toolkit/process/process_tree.h"

namespace cmt::watch {

std::vector<int> Roster::read() {
  if (whom_ == Whom::all) return process::read_pids(root_);
  if (whom_ == Whom::descendants) find_descendants();
  return {pids_.begin(), pids_.end()};
}

void Roster::find_descendants() {
  std::vector<int> to_ask(pids_.begin(), pids_.end());
  to_ask.insert(to_ask.end(), parents_.begin(), parents_.end());
  while (!to_ask.empty()) {
    const int pid = to_ask.back();
    to_ask.pop_back();
    for (const int child : process::read_children(pid, root_)) {
      if (!parents_.contains(child) && pids_.insert(child).second) to_ask.push_back(child);
    }
  }
}

}  // namespace cmt::watch
