#include "cmtwatch/family.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "process/children.h"

namespace cmt::watch {

Family::Family(int pid, Whom whom, Metric metric, std::string root)
    : pid_(pid), whom_(whom), metric_(metric), root_(std::move(root)) {
  add(pid_, 0);  // a parent that none of its own family is
}

Sample Family::read(bool details) {
  if (whom_ != Whom::one) find();
  Sample sample;
  for (auto member = members_.begin(); member != members_.end();) {
    const Reading reading = member->probe.read();
    if (reading.state == Reading::State::gone) {
      member = members_.erase(member);
      continue;
    }
    const bool read = reading.state == Reading::State::read;
    sample.bytes += reading.bytes;
    read ? ++sample.processes : ++sample.refused;
    if (details) {
      const auto bytes = read ? std::optional(reading.bytes) : std::nullopt;
      sample.by_process.push_back({member->probe.pid(), member->parent, member->probe.name(), bytes});
    }
    ++member;
  }
  return sample;
}

void Family::find() {
  std::set<int> visited;
  if (whom_ == Whom::adopted) return find_below(getpid(), visited);
  std::vector<int> known;
  for (const Member& member : members_) known.push_back(member.probe.pid());
  for (const int pid : known) find_below(pid, visited);
}

void Family::find_below(int pid, std::set<int>& visited) {
  if (!visited.insert(pid).second) return;
  for (const int child : process::read_children(pid, root_)) {
    if (!has(child)) add(child, pid);
    find_below(child, visited);
  }
}

void Family::add(int pid, int parent) {
  try {
    members_.push_back({Probe(pid, metric_, root_), parent});
  } catch (const std::system_error&) {  // it came and went: it loses only itself
  }
}

bool Family::has(int pid) const {
  return std::any_of(members_.begin(), members_.end(),
                     [pid](const Member& member) { return member.probe.pid() == pid; });
}

}  // namespace cmt::watch
