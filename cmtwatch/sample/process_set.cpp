#include "cmtwatch/sample/process_set.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "cmtwatch/sample/pause.h"
#include "toolkit/process/process_tree.h"
#include "toolkit/process/stat.h"

namespace cmt::watch {
namespace {

/// But SIGKILL and SIGSTOP, which cannot be blocked.
constexpr std::uint64_t all_signals = ~(std::uint64_t{1} << (SIGKILL - 1) | std::uint64_t{1} << (SIGSTOP - 1));

}  // namespace

Family::Family(int pid, Whom whom, Metric metric, std::string root, bool pauses)
    : pid_(pid), whom_(whom), metric_(metric), root_(std::move(root)), pauses_(pauses) {
  add(pid_, 0);  // a parent that none of its own family is
}

Sample Family::read(bool details) {
  if (!pauses_) {
    find();
    return read_members(details);
  }
  Sample sample;
  const std::int64_t paused_ns = while_paused([&](Pause& pause) {
    const auto members = [this] {
      find();
      std::vector<int> pids;
      for (const Member& member : members_) pids.push_back(member.probe.pid());
      return pids;
    };
    pause.stop_all(members, {pid_});
    sample = read_members(details);
    sample.not_paused = pause.not_paused();
  });
  sample.paused_ns = paused_ns;
  return sample;
}

Sample Family::read_members(bool details) {
  Sample sample;
  for (auto member = members_.begin(); member != members_.end();) {
    if (!counts(*member)) {
      member = member->probe.is_there() ? std::next(member) : members_.erase(member);
      continue;
    }
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

/// Asked before it is read: who has memory of its own keeps it. Whose it is is asked after that: a collector, which
/// shares its keeper's memory until it executes its program, has its name when it has memory of its own.
bool Family::counts(Member& member) {
  if (member.ours) return *member.ours;
  const bool may_share = member.parent != 0 && root_ == "/proc";
  if (may_share && process::share_memory(member.probe.pid(), member.parent)) return false;
  member.ours = left_out_.empty() ? true : is_ours(member.probe.pid());
  return member.ours.value_or(false);
}

/// A collector's keeper runs in the program's memory, and has it to itself when the program has ended or executed
/// another. It is told by its end, which sends no signal. An orphan's does, and the keeper is told by its mask: it
/// blocks each signal from its birth on, and nobody else those that glibc keeps for itself, but a child of glibc's fork
/// until it runs: so of such an orphan it is not known yet.
std::optional<bool> Family::is_ours(int pid) const {
  try {
    const process::Stat stat = process::read_stat(pid, root_);
    if (stat.name == left_out_ || stat.exit_signal == 0) return false;
    if (pid == pid_ || process::read_status(pid, root_).blocked_signals != all_signals) return true;
    const bool orphaned = process::read_stat(pid, root_).parent == getpid();  // it may have become one since
    return orphaned ? std::nullopt : std::optional(true);
  } catch (const std::system_error&) {  // it is gone
    return std::nullopt;
  }
}

void Family::find() {
  if (whom_ == Whom::one) return;
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
    members_.push_back({Probe(pid, metric_, root_), parent, {}});
  } catch (const std::system_error&) {  // it came and went: it loses only itself
  }
}

bool Family::has(int pid) const {
  return std::any_of(members_.begin(), members_.end(),
                     [pid](const Member& member) { return member.probe.pid() == pid; });
}

}  // namespace cmt::watch
