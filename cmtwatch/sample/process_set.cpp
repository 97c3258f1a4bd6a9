// A descriptor of statm stays valid when the process executes another program, so it is kept open. A descriptor of
// smaps_rollup belongs to the address space at the time of open(), which execve ends. So smaps_rollup is opened anew
// each time.

#include "cmtwatch/sample/process_set.h"

#include <signal.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <stdexcept>

#include "cmtwatch/sample/pause.h"
#include "libcmt/trace/files.h"
#include "toolkit/process/proc_mount.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

bool means_gone(const std::system_error& error) {
  return error.code().value() == ENOENT || error.code().value() == ESRCH;
}

bool means_forbidden(const std::system_error& error) {
  return error.code().value() == EACCES || error.code().value() == EPERM;
}

void check_process(int pid, const std::string& root) {
  process::need_proc(root);
  const std::string number = std::to_string(pid);
  process::Stat stat;
  try {
    stat = process::read_stat(pid, root);
  } catch (const std::system_error&) {
    const bool hidden = root == "/proc" && (kill(pid, 0) == 0 || errno == EPERM);
    throw std::runtime_error(hidden ? "process " + number + " is hidden: /proc is mounted with hidepid"
                                    : "there is no process " + number);
  }
  const std::string who = number + " (" + stat.name + ")";
  if (stat.kernel_thread) throw std::runtime_error(who + " is a kernel thread: it has no memory of its own");
  if (stat.zombie() && stat.threads > 1)
    throw std::runtime_error(who + " goes on in other threads than its first: only cmtwatch explain finds its memory");
  if (stat.zombie()) throw std::runtime_error(who + " has ended, and waits for its parent: its memory is gone");
}

Probe::Probe(int pid, Metric metric, const std::string& root) : metric_(metric), folder_(pid, root) {}

Reading Probe::read() {
  try {
    return {Reading::State::read, walks_page_tables(metric_) ? read_rollup() : read_without_page_tables()};
  } catch (const std::system_error& error) {
    return {means_gone(error) ? Reading::State::gone : Reading::State::refused, 0};
  }
}

const std::string& Probe::name() {
  is_there();
  return name_;
}

bool Probe::is_there() {
  try {
    const std::string_view text = folder_.read("comm", buffer_);
    name_ = text.substr(0, text.rfind('\n'));  // a name may have ends of lines
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

std::uint64_t Probe::read_without_page_tables() {
  if (metric_ == Metric::swap) return process::parse_status(folder_.read("status", buffer_)).swapped_bytes;
  if (statm_.get() < 0) statm_ = process::Fd(folder_.open("statm"));
  const process::Statm statm = process::parse_statm(process::read_again(statm_.get(), buffer_));
  if (statm.size_pages == 0)  // it has ended, and its parent has not waited for it yet
    throw std::system_error(ESRCH, std::generic_category(), "statm");
  const std::uint64_t pages = metric_ == Metric::vm    ? statm.size_pages
                              : metric_ == Metric::rss ? statm.resident_pages
                                                       : statm.resident_pages - statm.shared_pages;
  return pages * process::page_bytes();
}

std::uint64_t Probe::read_rollup() {
  const auto mappings = process::parse_smaps(folder_.read("smaps_rollup", buffer_));
  if (mappings.empty()) throw std::system_error(ESRCH, std::generic_category(), "smaps_rollup");
  return metric_ == Metric::pss ? mappings[0].proportional_bytes : mappings[0].private_bytes;
}

const std::vector<ProcessSet::Member>& ProcessSet::refresh() {
  if (includes_ == Includes::all) {
    members_.clear();
    for (const int pid : process::read_pids(root_)) members_.push_back({pid, 0});
  }
  if (includes_ == Includes::descendants) {
    std::set<int> visited;
    std::vector<int> ancestors = parents_;
    for (const Member& member : members_) ancestors.push_back(member.pid);
    for (const int pid : ancestors) find_below(pid, visited);
  }
  return members_;
}

std::vector<int> ProcessSet::refresh_pids() {
  std::vector<int> pids;
  for (const Member& member : refresh()) pids.push_back(member.pid);
  return pids;
}

void ProcessSet::remove(int pid) {
  if (pids_.erase(pid) != 0) std::erase_if(members_, [pid](const Member& member) { return member.pid == pid; });
}

void ProcessSet::insert(Member member) {
  if (pids_.insert(member.pid).second) members_.push_back(member);
}

void ProcessSet::find_below(int pid, std::set<int>& visited) {
  if (!visited.insert(pid).second) return;
  for (const int child : process::read_children(pid, root_)) {
    insert({child, pid});
    find_below(child, visited);
  }
}

Sample ProcessSampler::read(bool details) {
  if (!pauses_) return read_all(set_.refresh(), details);
  Sample sample;
  const std::int64_t paused_ns = while_paused(interrupted_calls_, [&](Pause& pause) {
    pause.stop_all([this] { return set_.refresh_pids(); }, {pid_});
    sample = read_all(set_.members(), details);
    sample.not_paused = pause.not_paused();
  });
  sample.paused_ns = paused_ns;
  return sample;
}

Sample ProcessSampler::read_all(const std::vector<ProcessSet::Member>& members, bool details) {
  Sample sample;
  std::vector<int> gone;
  for (const ProcessSet::Member& member : members) {
    Watched* const watched = find(member.pid);
    const bool measured = watched && counts(member, *watched);
    if (watched && !measured && watched->probe.is_there()) continue;
    const Reading reading = measured ? watched->probe.read() : Reading{};
    if (reading.state == Reading::State::gone) {
      gone.push_back(member.pid);
      continue;
    }
    const bool read = reading.state == Reading::State::read;
    sample.bytes += reading.bytes;
    read ? ++sample.processes : ++sample.refused;
    if (read) groups_.add(member.pid, reading.bytes);
    if (details) {
      const auto bytes = read ? std::optional(reading.bytes) : std::nullopt;
      sample.by_process.push_back({member.pid, member.parent, watched->probe.name(), bytes});
    }
  }
  sample.groups = groups_.take();
  assert(!details || sample.by_process.size() == sample.processes + sample.refused);
  for (const int pid : gone) {
    watched_.erase(pid);
    set_.remove(pid);
  }
  return sample;
}

/// Returns null if the process has ended.
ProcessSampler::Watched* ProcessSampler::find(int pid) {
  const auto known = watched_.find(pid);
  if (known != watched_.end()) return &known->second;
  try {
    return &watched_.emplace(pid, Watched{Probe(pid, metric_, root_)}).first->second;
  } catch (const std::system_error&) {
    return nullptr;
  }
}

/// Decided once, when the process has memory of its own. A collector shares its supervisor's memory until it executes
/// its program, so that by then it also has its name.
bool ProcessSampler::counts(const ProcessSet::Member& member, Watched& watched) const {
  if (watched.counts) return *watched.counts;
  const bool may_share = member.parent != 0 && root_ == "/proc";
  if (may_share && process::share_memory(member.pid, member.parent)) return false;
  watched.counts = leaves_out_collectors_ ? is_of_watch(member.pid) : true;
  return watched.counts.value_or(false);
}

/// Whether a process is neither a collector nor a supervisor of one. A supervisor runs in the memory of the traced
/// program, and is alone in it when the program has ended or executed another. It gives itself its name in its first
/// instructions; until then it is recognised by its exit signal, 0. Returns nullopt if the process is gone.
std::optional<bool> ProcessSampler::is_of_watch(int pid) const {
  try {
    const process::Stat stat = process::read_stat(pid, root_);
    return stat.name != collector_name && stat.name != supervisor_name && stat.exit_signal != 0;
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace cmt::watch
